# frozen_string_literal: true

require "json"
require "logger"
# For pretty_inspect.
require "pp" # rubocop:disable Lint/RedundantRequireStatement
require "stringio"
require "yaml"
require_relative "support"

# Of the servers of the tests, only the second one may be down. The last of these ports is closed.
module TwoOfThree
  MISSPELT = "127.0.0.1:1"
  TWO_OF_THREE = [RedlockTest::SERVERS[0], RedlockTest::SERVERS[2], MISSPELT].freeze

  def two_of_three(**options)
    manager(*TWO_OF_THREE, **options)
  end
end

# The words after a success, and words that never appear.
class WordsTest < RedlockTest
  include TwoOfThree

  def test_a_server_that_is_not_there_is_named
    locker = two_of_three
    assert_includes locker.connect, MISSPELT
    locker.lock(@name, ttl: 60) do |lease|
      assert_includes lease.message, MISSPELT
      lease.extend
      assert_includes lease.message, MISSPELT
    end
  end

  def test_what_is_known_of_each_server
    locker = two_of_three
    locker.connect
    there, _, absent = locker.servers
    assert_equal [SERVERS[0], true, true, "", "primary"], [there.name, there.connected, there.votes, there.words, there.role]
    assert_equal [40, false], [there.run_id.size, there.version.empty?]
    assert_operator there.round_trip, :>=, 0
    assert_operator there.clock_offset.abs, :<, 3600 # the same machine's
    assert_equal [MISSPELT, false, false, "", ""], [absent.name, absent.connected, absent.votes, absent.run_id, absent.role]
    assert_nil absent.round_trip
    assert_nil absent.clock_offset
    refute_empty absent.words
    locker.close
    assert_raises(Redlock::Closed) { locker.servers }
  end

  def test_nothing_is_said_where_all_are_there
    locker = manager(SERVERS[0])
    assert_equal "", locker.connect
    locker.lock(@name, ttl: 60) { |lease| assert_equal "", lease.message }
  end

  def test_after_a_failure_it_is_the_message_of_the_exception
    @locker.lock(@name, ttl: 60) do |lease|
      error = assert_raises(Redlock::InvalidArgument) { lease.extend(ttl: 0) }
      assert_equal error.message, lease.message
      refute_empty lease.message
    end
  end

  PASSWORD = "s3same-0pen"

  def test_neither_a_token_nor_a_password_shows
    lines = StringIO.new
    guarded = two_of_three(user: "u", password: PASSWORD, logger: Logger.new(lines))
    by_url = manager(*TWO_OF_THREE.map { |server| "redis://u:#{PASSWORD}@#{server}" })
    lease = @locker.lock(@name, ttl: 60)
    assert_match(/\A[0-9A-F]{40}\z/, lease.token)
    secrets = [PASSWORD, lease.token]
    assert_hidden(secrets, [guarded, by_url, @locker, lease].flat_map { |thing| all_that_shows(thing) })
    assert_hidden secrets, errors(guarded, by_url, lease) << lines.string
    refute_includes lease.message, lease.token
    lease.unlock
    assert_equal "", lease.token
  end

  def all_that_shows(thing)
    inner = thing.instance_variables.map { |name| thing.instance_variable_get(name) }
    inner += inner.flat_map { |it| it.instance_variables.map { |name| it.instance_variable_get(name) } }
    dumps = [Marshal, YAML].map { |form| said_by { form.dump(thing) } }
    [thing, *inner].flat_map { |it| [it.inspect, it.to_s, it.pretty_inspect] } + [thing.to_json, *dumps]
  end

  def errors(guarded, by_url, lease)
    [
      said_by { guarded.lock("x", ttl: 1, wait: 0) }, said_by { by_url.lock("x", ttl: 1, wait: 0) },
      said_by { manager("h:1", password: "#{PASSWORD}\0") }, said_by { manager("redis://u:#{PASSWORD}@h:x") },
      said_by { @locker.lock(@name, ttl: 1, wait: 0) }, said_by { lease.extend(ttl: 0) },
      said_by { guarded.missing }, said_by { lease.missing },
      said_by { guarded.instance_variable_get(:@servers).missing }
    ]
  end

  def said_by
    yield.to_s
  rescue StandardError => e
    "#{e.full_message(highlight: false)} #{e.inspect}".lines.grep_v(/_test\.rb/).join
  end

  def assert_hidden(secrets, shown)
    shown.product(secrets) { |text, secret| refute_includes text, secret }
  end
end

class LoggerTest < RedlockTest
  include TwoOfThree

  def setup
    super
    @lines = []
    @tell = ->(severity, line) { @lines.push([severity, line]) }
  end

  def test_a_fault_is_told_with_a_severity_of_logger
    locker = two_of_three(logger: @tell)
    locker.lock(@name, ttl: 60) { true }
    assert(@lines.any? { |severity, line| severity == Logger::WARN && line.include?(MISSPELT) })
    assert_empty @lines.map(&:first).uniq - [Logger::WARN, Logger::INFO]
  end

  def test_a_logger_will_do
    text = StringIO.new
    locker = two_of_three
    locker.logger = Logger.new(text)
    locker.connect
    assert_match(/WARN.*#{MISSPELT}/, text.string)
  end

  def test_nobody_is_told_any_more
    locker = two_of_three(logger: @tell)
    locker.logger = nil
    locker.connect
    assert_empty @lines
  end

  # It runs, when it is told of the lock, until that lock has ended.
  def outlasting(name)
    ->(_, line) { eventually("the lock has ended") { keys(name).zero? } if line.include?(name) }
  end

  def test_a_lock_that_ends_while_it_runs_is_not_had
    locker = manager(logger: outlasting(@name), trace: :resources)
    error = assert_raises(Redlock::TooSlow) { locker.lock(@name, ttl: 0.2, wait: 0) }
    assert_includes error.message, "before the program read the result of the call"
    assert_raises(Redlock::TooSlow) { locker.semaphore(@name, permits: 1, ttl: 0.2).acquire(wait: 0) }
    ticket = @locker.lock(@name, ttl: 0.2).detach
    assert_raises(Redlock::TooSlow) { locker.adopt(ticket) }
  end

  def test_a_lock_that_ends_while_it_runs_is_lost
    locker = manager(trace: :resources)
    lease = locker.lock(@name, ttl: 0.5)
    locker.logger = outlasting(@name)
    assert_raises(Redlock::Lost) { lease.extend }
  end

  def test_what_is_no_logger
    assert_raises(TypeError) { @locker.logger = "a file" }
  end

  # They are told as those of threads.
  def test_its_errors_do_not_change_a_call
    out, words = ruby_with_manager(<<~SCRIPT)
      LOCKER.logger = ->(*) { raise IOError, "no space left on device" }
      locker = Redlock::Manager.new(*#{TWO_OF_THREE}, logger: ->(*) { raise IOError, "no space left on device" })
      lease = locker.lock(NAME, ttl: 60)
      puts lease.extend, lease.unlock
      sleep 0.001 while Thread.list.size > 1
    SCRIPT
    assert_equal "true\ntrue\n", out
    assert_match(/terminated with exception.*no space left on device \(IOError\)/m, words)
    assert_free
  end

  def test_what_is_raised_beyond_that_is_raised_and_leaves_nothing
    takes = [->(locker) { locker.lock(@name, ttl: 60) { flunk } }, ->(locker) { locker.lock(@name, ttl: 60) },
             ->(locker) { locker.lock(@name, ttl: 60, keep_alive: true, reentrant: true) },
             ->(locker) { locker.semaphore(@name, permits: 2, ttl: 60).acquire { flunk } },
             ->(locker) { locker.adopt(@locker.lock(@name, ttl: 60).detach) { flunk } }]
    takes.each do |take|
      locker = manager(trace: :events, logger: ->(*) { raise Interrupt, "in the logger" })
      assert_raises(Interrupt) { take.call(locker) }
      assert_free
    end
    takes.first(2).each do |take|
      catch(:out) { take.call(manager(trace: :events, logger: ->(*) { throw :out })) }
      assert_free
    end
  end

  # No call is made meanwhile: a thread of the library is told of what it does for the lock.
  def test_whatever_it_raises_a_kept_lock_is_looked_after
    silently do
      [IOError, NotImplementedError].each do |error|
        calls = Queue.new
        told = Queue.new
        locker = manager(trace: :events)
        lease = locker.lock(@name, ttl: 1.2, keep_alive: true)
        lease.on_lost { told.push(true) }
        locker.logger = ->(*) { calls.push(true) && raise(error, "in the logger") }
        eventually("it is called again and again") { calls.size > 2 }
        assert_predicate lease, :held?
        ask_all("DEL", @name)
        eventually("the loss is told") { !told.empty? }
        locker.logger = nil
        assert_raises(Redlock::Lost) { lease.unlock }
      end
    end
  end

  # Threads that end with an exception do not say so.
  def silently
    before = Thread.report_on_exception
    Thread.report_on_exception = false
    yield
  ensure
    Thread.report_on_exception = before
  end

  def test_it_may_use_the_manager
    answers = []
    locker = two_of_three
    locker.logger = ->(*) { answers.push(locker.locked?(@name)) }
    locker.lock(@name, ttl: 60) { true }
    refute_empty answers
  end

  # What it causes is told when it has ended.
  def test_it_is_not_called_within_itself
    depths = []
    depth = 0
    locker = manager(trace: :events)
    locker.logger = lambda do |*|
      depths.push(depth += 1)
      locker.lock("#{@name}:b", ttl: 60) { true } if depths.size == 1
      depth -= 1
    end
    locker.lock(@name, ttl: 60) { true }
    assert_equal [1], depths.uniq
    assert_operator depths.size, :>=, 4
  end

  # The logger is called in the middle of interruptions from outside.
  def test_interruptions_wait_for_its_end
    100.times { |i| stop_a_thread_that_is_told_things(i.even?, rand(0.0..0.004)) }
    refute_empty @lines
    assert_free
  end

  def stop_a_thread_that_is_told_things(by_kill, after)
    thread = Thread.new do
      Thread.current.report_on_exception = false
      loop { two_of_three(logger: @tell).lock(@name, ttl: 600) { Thread.pass } }
    end
    sleep after
    by_kill ? thread.kill : thread.raise(IOError, "from outside")
    assert thread.join(PATIENCE), "it went on"
  rescue IOError
    true
  end

  def test_threads_and_the_collector
    threads = Array.new(4) do
      Thread.new do
        10.times do
          locker = two_of_three(logger: @tell)
          locker.lock(@name, ttl: 60, wait: nil) { true }
          locker.logger = nil if rand < 0.5
          GC.start
        end
      end
    end
    threads.each(&:join)
    refute_empty @lines
    assert_free
  end

  def test_a_child_tells_what_it_met_with_itself
    locker = two_of_three(logger: @tell)
    locker.lock(@name, ttl: 60) { true }
    mine = @lines.size
    theirs = in_child { locker.lock(@name, ttl: 60) { @lines.drop(mine) } }
    assert_includes theirs.to_s, MISSPELT
    assert_equal mine, @lines.size
  end

  def test_threads_that_are_told_things_when_the_program_ends
    out, error = ruby(<<~SCRIPT)
      4.times do
        Thread.new do
          loop { Redlock::Manager.new(*#{TWO_OF_THREE}, logger: ->(*) {}).lock(#{@name.dump}, ttl: 600, wait: nil) { 1 } }
        end
      end
      sleep 0.1
      puts "the end"
    SCRIPT
    assert_equal ["the end\n", ""], [out, error]
    ask_all("DEL", @name)
  end
end
