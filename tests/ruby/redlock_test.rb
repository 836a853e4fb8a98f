# frozen_string_literal: true

# Needs REDLOCK_TEST_SERVERS=host:port,host:port,... (real servers, of which a minority may be
# down) and REDLOCK_LIBRARY, unless the loader finds the library by itself.

require "minitest/autorun"
require "open3"
require "rbconfig"
require "securerandom"
require "socket"
require "timeout"
require_relative "../../c-examples/ruby/redlock"

class RedlockTest < Minitest::Test
  SERVERS = ENV.fetch("REDLOCK_TEST_SERVERS").split(",").freeze
  PATIENCE = 20 # seconds after which something that should have happened has not

  def setup
    @locker = manager
    @name = "ruby:#{name}:#{SecureRandom.hex(8)}"
  end

  def manager(*servers, **options)
    servers = SERVERS if servers.empty?
    Redlock::Manager.new(*servers, retry_delay: 0.004, reply_timeout: 0.5, **options)
  end

  def assert_free(name = @name)
    # A short wait, beside a ttl that is much longer: a server that is behind may need it.
    assert_equal :taken_and_released, manager.lock(name, ttl: 600, wait: 5) { :taken_and_released }
  end

  def eventually(what)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + PATIENCE
    until yield
      flunk "never came true: #{what}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
      sleep 0.002
    end
  end

  # Runs the block in a child, and returns what it returned.
  def in_child
    reader, writer = IO.pipe
    child = fork do
      answer = begin
        yield
      rescue Exception => e # rubocop:disable Lint/RescueException -- the parent is to see it
        e
      end
      writer.write(Marshal.dump(answer))
      writer.close
      exit!(0)
    end
    writer.close
    Marshal.load(reader.read)
  ensure
    reader.close
    Process.wait(child)
  end

  # What a program of its own writes on its output and on its error output.
  def ruby(script, environment = {})
    library = File.expand_path("../../c-examples/ruby/redlock.rb", __dir__)
    Open3.capture3(environment, RbConfig.ruby, "-w", "-r", library, "-e", script).first(2)
  end
end

class BlockTest < RedlockTest
  def test_the_block_has_the_lock_and_gives_its_value
    result = @locker.lock(@name, ttl: 30) do |lease|
      assert lease.held?
      assert_operator lease.remaining, :>, 0
      assert_operator lease.remaining, :<, 30
      assert manager.locked?(@name)
      :value
    end
    assert_equal :value, result
    refute @locker.locked?(@name)
  end

  def test_an_exception_releases
    assert_raises(ZeroDivisionError) { @locker.lock(@name, ttl: 600) { 1 / 0 } }
    assert_free
  end

  def test_throw_and_break_and_return_release
    catch(:out) { @locker.lock(@name, ttl: 600) { throw :out } }
    assert_free
    @locker.lock(@name, ttl: 600) { break }
    assert_free
    returning
    assert_free
  end

  def returning
    @locker.lock(@name, ttl: 600) { return }
  end

  def test_a_block_may_release_early
    @locker.lock(@name, ttl: 600) do |lease|
      lease.unlock
      assert_free
    end
  end

  def test_a_lock_that_ran_out_before_the_block_ended_is_lost
    assert_raises(Redlock::Lost) do
      @locker.lock(@name, ttl: 0.1) { eventually("it expires") { !@locker.locked?(@name) } }
    end
    error = assert_raises(RuntimeError) do
      @locker.lock(@name, ttl: 0.1) do |lease|
        eventually("it expires") { !lease.held? }
        raise "the block's own"
      end
    end
    assert_equal "the block's own", error.message
  end

  def test_without_a_block_the_lease_is_the_callers
    lease = @locker.lock(@name, ttl: 600)
    assert manager.locked?(@name)
    assert lease.unlock
    assert_raises(Redlock::Lost) { lease.unlock }
    refute lease.held?
    assert_equal 0, lease.remaining
  end

  def test_names_may_be_symbols_or_any_bytes_but_nul
    @locker.lock(@name.to_sym, ttl: 600) { assert manager.locked?(@name) }
    odd = "#{@name}\xFF\n\u00e9".b
    @locker.lock(odd, ttl: 600) { assert manager.locked?(odd) }
    assert_raises(Redlock::InvalidArgument) { @locker.lock("#{@name}\0x", ttl: 600) { flunk } }
    assert_raises(Redlock::InvalidArgument) { @locker.locked?("#{@name}\0x") }
  end
end

class InterruptionTest < RedlockTest
  def test_timeout_in_the_block_releases
    assert_raises(Timeout::Error) do
      Timeout.timeout(0.1) { @locker.lock(@name, ttl: 600) { sleep } }
    end
    assert_free
  end

  def test_timeout_ends_the_waiting
    @locker.lock(@name, ttl: 600) do
      assert_raises(Timeout::Error) do
        Timeout.timeout(0.1) { @locker.lock(@name, ttl: 600, wait: nil) { flunk } }
      end
    end
    assert_free
  end

  def test_a_killed_thread_releases
    holding = Queue.new
    thread = Thread.new { @locker.lock(@name, ttl: 600) { holding.push(true); sleep } }
    holding.pop
    thread.kill.join
    assert_free
  end

  def test_a_killed_thread_stops_waiting
    @locker.lock(@name, ttl: 600) do
      thread = Thread.new { @locker.lock(@name, ttl: 600, wait: nil) { flunk } }
      eventually("it waits") { thread.status == "sleep" }
      thread.kill.join
    end
    assert_free
  end

  # Wherever a thread is stopped, and be it between the grant and the block, it stops, and nothing
  # stays locked.
  def test_a_thread_stopped_at_any_moment_leaves_nothing_locked
    running = Queue.new
    200.times do |i|
      thread = Thread.new do
        Thread.current.report_on_exception = false
        running.push(true)
        loop { @locker.lock(@name, ttl: 600) { Thread.pass } }
      end
      running.pop
      sleep rand(0.0..0.004)
      i.even? ? thread.kill : thread.raise(IOError, "from outside")
      assert stopped?(thread), "it went on"
    end
    assert_free
  end

  def stopped?(thread)
    thread.join(PATIENCE)
  rescue IOError
    true
  end

  # The exceptions of signal handlers heed no mask: Ctrl-C must release as well.
  def test_signals_at_any_moment_leave_nothing_locked
    old = trap("USR1") { raise Interrupt, "from a signal" }
    20.times do
      sender = nil
      assert_raises(Interrupt) do
        sender = Thread.new { sleep rand(0.0..0.004); Process.kill("USR1", Process.pid) }
        eventually("the signal ends this") { @locker.lock(@name, ttl: 600) { false } }
      end
      sender.join
    end
    assert_free
  ensure
    trap("USR1", old)
  end

  def test_an_interrupt_that_is_masked_outside_stays_masked
    ended = false
    holding = Queue.new
    go_on = Queue.new
    thread = Thread.new do
      Thread.handle_interrupt(IOError => :never) do
        @locker.lock(@name, ttl: 600) { holding.push(true); go_on.pop; ended = true }
      end
    end
    thread.report_on_exception = false
    holding.pop
    thread.raise(IOError, "later")
    go_on.push(true)
    assert_raises(IOError) { thread.join }
    assert ended
    assert_free
  end
end

class WaitingTest < RedlockTest
  def test_threads_exclude_each_other
    lockers = [@locker, manager]
    counter = 0
    threads = Array.new(16) do |i|
      Thread.new do
        4.times do
          lockers[i % 2].lock(@name, ttl: 30, wait: 60) do
            seen = counter
            Thread.pass
            counter = seen + 1
          end
        end
      end
    end
    threads.each(&:join)
    assert_equal 64, counter
  end

  def test_a_taken_lock_is_tried_once_or_for_a_time
    @locker.lock(@name, ttl: 600) do
      [0, 0.1].each do |wait|
        error = assert_raises(Redlock::Taken) { @locker.lock(@name, ttl: 600, wait: wait) { flunk } }
        assert_kind_of Redlock::Error, error
        assert_equal 1, error.status
        refute_empty error.message
      end
    end
  end

  def test_a_waiter_gets_the_lock_when_it_is_free
    lease = @locker.lock(@name, ttl: 600)
    waiter = Thread.new { @locker.lock(@name, ttl: 600, wait: nil) { :got_it } }
    eventually("it waits") { waiter.status == "sleep" }
    lease.unlock
    assert_equal :got_it, waiter.value
  end

  def test_other_threads_run_while_one_waits_for_silent_servers
    silent = Array.new(3) { TCPServer.new("127.0.0.1", 0) }
    addresses = silent.map { |server| "127.0.0.1:#{server.addr[1]}" }
    locker = manager(*addresses, connect_timeout: 0.5, reply_timeout: 0.5)
    turns = 0
    counter = Thread.new { loop { turns += 1; sleep 0.001 } }
    error = assert_raises(Redlock::Unreachable) { locker.lock(@name, ttl: 60, wait: 0) { flunk } }
    assert_equal 2, error.status
    assert_operator turns, :>, 10
    assert_raises(Redlock::Unreachable) { locker.locked?(@name) }
  ensure
    counter&.kill
    silent&.each(&:close)
  end
end

class LeaseTest < RedlockTest
  def test_extend_and_confirm
    @locker.lock(@name, ttl: 5) do |lease|
      lease.extend(ttl: 60)
      assert_operator lease.remaining, :>, 30
      assert lease.confirm(least: 30)
      assert_raises(Redlock::Lost) { lease.confirm(least: 90) }
      assert lease.extend
    end
  end

  def test_what_has_ended_is_lost_and_the_next_holder_is_left_alone
    lease = @locker.lock(@name, ttl: 0.1)
    eventually("it expires") { !lease.held? && !@locker.locked?(@name) }
    @locker.lock(@name, ttl: 600) do |theirs|
      error = assert_raises(Redlock::Lost) { lease.extend }
      assert_equal 4, error.status
      assert_raises(Redlock::Lost) { lease.confirm }
      assert_raises(Redlock::Lost) { lease.unlock }
      assert theirs.confirm
    end
  end

  def test_many_threads_on_one_lease
    @locker.lock(@name, ttl: 60) do |lease|
      Array.new(8) { Thread.new { assert lease.extend } }.each(&:join)
      assert lease.held?
    end
  end

  def test_bad_arguments
    [0, -1, 0.001, Float::INFINITY].each do |ttl|
      error = assert_raises(Redlock::InvalidArgument) { @locker.lock(@name, ttl: ttl) { flunk } }
      assert_equal(-1, error.status)
      refute_empty error.message
    end
    ["", "x" * 65_537].each do |bad|
      assert_raises(Redlock::InvalidArgument) { @locker.lock(bad, ttl: 60) { flunk } }
    end
    ["", "host:0", "host:65536", "http://host", "a\0b:1"].each do |bad|
      assert_raises(Redlock::InvalidArgument) { Redlock::Manager.new(bad) }
    end
    assert_raises(Redlock::InvalidArgument) { Redlock::Manager.new(*SERVERS, drift_factor: 1) }
    assert_raises(Redlock::NoServers) { Redlock::Manager.new }
  end

  def test_the_collector_only_frees
    names = Array.new(30) { |i| "#{@name}:#{i}" }
    forget(names)
    3.times { GC.start }
    names.each { |name| assert @locker.locked?(name), "the collector released #{name}" }
  end

  def forget(names)
    names.each { |name| manager.lock(name, ttl: 60) }
  end
end

class ForkTest < RedlockTest
  def test_a_child_locks_alone
    @locker.lock(@name, ttl: 600) { nil } # the parent is connected before it forks
    other = "#{@name}:other"
    assert_equal :had_it, in_child { @locker.lock(other, ttl: 600) { :had_it } }
    assert_free(other)
    @locker.lock(@name, ttl: 600) do
      assert_equal Redlock::Taken, in_child { @locker.lock(@name, ttl: 600, wait: 0) }.class
    end
  end

  def test_children_exclude_each_other
    reader, writer = IO.pipe
    children = Array.new(4) do
      fork do
        3.times do
          @locker.lock(@name, ttl: 30, wait: 60) do
            writer.syswrite("(")
            sleep 0.002 # the others have their chance to come in between
            writer.syswrite(")")
          end
        end
        exit!(0)
      end
    end
    writer.close
    assert_equal "()" * 12, reader.read
    children.each { |child| assert Process.wait2(child).last.success? }
  ensure
    reader&.close
  end

  def test_a_child_cannot_touch_the_lock_of_its_parent
    lease = @locker.lock(@name, ttl: 600)
    assert_equal [false, 0.0], in_child { [lease.held?, lease.remaining] }
    %i[unlock extend confirm].each do |call|
      assert_equal Redlock::Forked, in_child { error_of(lease, call) }, call
    end
    assert lease.confirm
    lease.unlock
  end

  def error_of(lease, call)
    lease.__send__(call)
  rescue Redlock::Error => e
    e.class
  end

  # The child leaves the block of its parent: by an exception, by exit, or as if nothing were.
  def test_a_child_that_leaves_the_block_of_its_parent_does_not_release
    ["raise 'out'", "exit", "nil"].each do |leave|
      out, = ruby(<<~SCRIPT)
        Redlock::Manager.new(*#{SERVERS}).lock(#{@name.dump}, ttl: 600) do |lease|
          if fork
            Process.wait
            puts "still the parent's" if lease.confirm
          else
            #{leave}
          end
        end
      SCRIPT
      assert_equal "still the parent's\n", out, leave
    end
  end
end

class LoadingTest < RedlockTest
  def test_there_are_no_warnings
    script = "puts Redlock::Manager.new(*#{SERVERS}).lock(#{@name.dump}, ttl: 60) { :fine }"
    assert_equal ["fine\n", ""], ruby(script)
  end

  def test_a_library_that_is_not_there
    _, words = ruby("", "REDLOCK_LIBRARY" => "/nowhere/libredlock.so")
    assert_match(/LoadError/, words)
    assert_match(%r{/nowhere/libredlock.so}, words)
  end
end
