# frozen_string_literal: true

require "bigdecimal"
require_relative "scheduler"
require_relative "support"

class ArgumentsTest < RedlockTest
  HUGE = [Float::INFINITY, 1e300, 10**40].freeze

  def test_ttls
    [0, -1, -0.0001, 0.0001, 0.001, -Float::INFINITY, Float::NAN, *HUGE].each do |ttl|
      error = assert_raises(Redlock::InvalidArgument) { @locker.lock(@name, ttl: ttl) { flunk } }
      assert_equal(-1, error.status)
      refute_empty error.message
    end
    [nil, "10", :ten, [], Object.new, Time.now].each do |ttl|
      assert_raises(TypeError) { @locker.lock(@name, ttl: ttl) { flunk } }
    end
    [10, 10.5, 21r / 2, BigDecimal("10.5")].each do |ttl|
      @locker.lock(@name, ttl: ttl) { |lease| assert_in_delta 10, lease.remaining, 5 }
    end
    assert_free
  end

  def test_waits
    [-1, -0.0001, Float::NAN].each do |wait|
      assert_raises(Redlock::InvalidArgument) { @locker.lock(@name, ttl: 60, wait: wait) { flunk } }
    end
    assert_raises(TypeError) { @locker.lock(@name, ttl: 60, wait: "1") { flunk } }
    [nil, 0, 0.0001, *HUGE].each { |wait| @locker.lock(@name, ttl: 60, wait: wait) { assert true } }
    assert_free
  end

  def test_what_a_lease_is_asked
    @locker.lock(@name, ttl: 60) do |lease|
      [0, -1, 0.0001, Float::NAN, *HUGE].each do |ttl|
        assert_raises(Redlock::InvalidArgument) { lease.extend(ttl: ttl) }
      end
      [-1, Float::NAN].each { |least| assert_raises(Redlock::InvalidArgument) { lease.confirm(least: least) } }
      HUGE.each { |least| assert_raises(Redlock::TooShort) { lease.confirm(least: least) } }
      assert_raises(TypeError) { lease.extend(ttl: nil) }
      assert lease.confirm(least: 0.0001)
    end
  end

  def test_names
    ["", :"", "x" * 65_537].each do |bad|
      assert_raises(Redlock::InvalidArgument) { @locker.lock(bad, ttl: 60) { flunk } }
      assert_raises(Redlock::InvalidArgument) { @locker.locked?(bad) }
    end
    ["", "host:0", "host:65536", "http://host", "a\0b:1"].each do |bad|
      assert_raises(Redlock::InvalidArgument) { Redlock::Manager.new(bad) }
    end
  end

  # Their texts differ from process to process, or are not what the caller means.
  NO_NAMES = [Object.new, nil, true, 1.5, { a: 1 }, Time.now, Struct.new(:id).new(1), String].freeze

  def test_an_object_is_no_name
    NO_NAMES.each do |bad|
      [bad, [bad], ["a", bad], [["a"]]].each do |resource|
        error = assert_raises(TypeError) { @locker.lock(resource, ttl: 60) { flunk } }
        assert_match(/resource must be a String, a Symbol or an Integer, not /, error.message)
        assert_raises(TypeError) { @locker.try_lock(resource, ttl: 60) { flunk } }
        assert_raises(TypeError) { @locker.lock(resource, ttl: 60, reentrant: true) { flunk } }
        assert_raises(TypeError) { @locker.semaphore(resource, permits: 2, ttl: 60).acquire { flunk } }
      end
      assert_raises(TypeError) { @locker.locked?(bad) }
      assert_raises(TypeError) { @locker.info(bad) }
      assert_raises(TypeError) { @locker.semaphore(bad, permits: 2, ttl: 60).taken }
    end
    [[], ["a"]].each { |several| assert_raises(TypeError) { @locker.locked?(several) } }
  end

  def test_a_number_is_a_name
    number = SecureRandom.random_number(10**15)
    @locker.lock([number, @name], ttl: 60) do |lease|
      assert_equal [number.to_s, @name], lease.resources
      assert manager.locked?(number.to_s)
      assert_nil manager.try_lock(number.to_s, ttl: 60)
    end
    assert_free(number.to_s)
  end

  def test_an_object_is_no_text
    [Object.new, 5, ["a"], { a: 1 }].each do |bad|
      { "password" => { password: bad }, "user" => { user: bad, password: "x" },
        "tls.ca" => { tls: { ca: bad } }, "tls.server_name" => { tls: { server_name: bad } } }.each do |what, options|
        error = assert_raises(TypeError) { manager(**options) }
        assert_match(/#{what} must be a String|no implicit conversion/, error.message)
        refute_includes error.message, bad.inspect
      end
      assert_raises(TypeError) { manager(password: -> { bad }) }
      assert_raises(TypeError) { @locker.adopt(bad) }
    end
    assert_raises(TypeError) { manager(password: -> {}) }
  end

  def test_settings
    [1, -0.1, Float::NAN].each do |factor|
      assert_raises(Redlock::InvalidArgument) { Redlock::Manager.new(*SERVERS, drift_factor: factor) }
    end
    %i[retry_delay connect_timeout reply_timeout].each do |time|
      [-1, -0.0001, Float::NAN].each do |value|
        assert_raises(Redlock::InvalidArgument) { Redlock::Manager.new(*SERVERS, time => value) }
      end
      assert_raises(TypeError) { Redlock::Manager.new(*SERVERS, time => nil) }
      assert Redlock::Manager.new(*SERVERS, time => 0.0001)
    end
    assert_raises(Redlock::InvalidArgument) { Redlock::Manager.new(*SERVERS, connect_timeout: 0) }
    [[], [[]]].each { |none| assert_raises(Redlock::NoServers) { Redlock::Manager.new(*none) } }
    assert Redlock::Manager.new(SERVERS) # an array will do
    assert_raises(ArgumentError) { Redlock::Manager.new(*SERVERS, unknown: 1) }
  end

  def test_restart_guards
    %i[on strict off durable].each do |mode|
      [{}, { longest_ttl: 60, guard_cap: 300.5 }].each do |times|
        manager(restart_guard: mode, **times).lock(@name, ttl: 60) { |lease| assert_predicate lease, :held? }
      end
    end
    { "restart_guard is :always" => { restart_guard: :always }, "restart_guard is nil" => { restart_guard: nil },
      "longest_ttl is -0.001 s: it must be 0 s to" => { longest_ttl: -0.0001 }, "guard_cap is 4611686018427387.904 s: it must be" => { guard_cap: Float::INFINITY },
      "guard_cap is " => { guard_cap: Float::NAN } }.each do |words, bad|
      error = assert_raises(Redlock::InvalidArgument) { manager(**bad) }
      assert_includes error.message, words
    end
    assert_raises(TypeError) { manager(longest_ttl: "60") }
  end

  # There is none here: with and without the setting, a lock is had.
  def test_servers_that_no_sentinel_watches_have_no_failover_guard
    [true, false].each do |failover_guard|
      manager(failover_guard: failover_guard).lock(@name, ttl: 60) { |lease| assert_predicate lease, :held? }
    end
  end

  def test_fencing_tokens_grow
    [@locker, manager(fencing: false)].each do |plain|
      plain.lock(@name, ttl: 60) { |lease| assert_nil lease.fencing_token }
    end
    locker = manager(fencing: true)
    tokens = Array.new(3) do
      locker.lock(@name, ttl: 60) do |lease|
        token = lease.fencing_token
        lease.extend(ttl: 120)
        assert_equal token, lease.fencing_token
        lease.unlock
        assert_nil lease.fencing_token
        token
      end
    end
    assert_operator tokens[0], :>, 0
    assert_equal tokens.uniq.sort, tokens
  end

  def test_a_taken_lock_is_tried_once_or_for_a_time
    @locker.lock(@name, ttl: 600) do
      [0, 0.1].each do |wait|
        error = assert_raises(Redlock::Taken) { manager.lock(@name, ttl: 600, wait: wait) { flunk } }
        assert_kind_of Redlock::Error, error
        assert_equal 1, error.status
        assert_predicate error.message, :valid_encoding?
        refute_empty error.message
      end
    end
  end

  def test_nothing_secret_is_shown
    locker = manager(user: "somebody", password: "sesame")
    shown = [locker.inspect, locker.to_s]
    manager.lock(@name, ttl: 600) { |lease| shown.push(lease.inspect) }
    refute_match(/sesame|[0-9A-F]{40}/, shown.join)
  end
end

class ClosedTest < RedlockTest
  def test_after_the_end_everything_says_so
    lease = @locker.lock(@name, ttl: 600)
    2.times { assert_nil @locker.close }
    assert_predicate @locker, :closed?
    assert_raises(Redlock::Closed) { @locker.lock(@name, ttl: 600) { flunk } }
    assert_raises(Redlock::Closed) { @locker.locked?(@name) }
    assert_raises(Redlock::Closed) { @locker.connect }
    %i[extend confirm].each { |call| assert_raises(Redlock::Closed) { lease.__send__(call) } }
    assert lease.held?
    assert lease.unlock
    assert_raises(Redlock::Closed) { lease.unlock }
    eventually("it is released") { keys(@name).zero? }
  end

  def outcome(&call)
    Thread.new do
      call.call
    rescue Redlock::Error => e
      e.class
    end
  end

  def assert_closed(threads)
    threads.each { |thread| assert thread.join(PATIENCE), "it waits for ever" }
    assert_equal [Redlock::Closed], threads.map(&:value).uniq
  end

  def test_those_who_wait_end_at_once
    other = manager
    held = other.lock(@name, ttl: 600)
    semaphore = @locker.semaphore(@name, permits: 1, ttl: 600)
    calls = [
      -> { @locker.lock(@name, ttl: 600, wait: nil) { flunk } }, -> { @locker.lock(@name, ttl: 600, wait: nil) },
      -> { @locker.lock(@name, ttl: 600, wait: nil, reentrant: true) { flunk } },
      -> { @locker.lock(["#{@name}:b", @name], ttl: 600, wait: nil) }, -> { semaphore.acquire(wait: nil) { flunk } },
      -> { @locker.lock(@name, ttl: 600, wait: nil, shared: true, keep_alive: true) { flunk } }
    ]
    threads = calls.map { |call| outcome(&call) }
    eventually("they wait") { @locker.stats.waiting == threads.size }
    @locker.close
    assert_closed(threads)
    assert_predicate held, :held?
    assert held.unlock
    @locker = other
    assert_free
    assert_free("#{@name}:b")
  end

  def test_fibers_that_wait_end_at_once
    skip "there are no schedulers before Ruby 3.1" unless schedulers?
    other = manager
    held = other.lock(@name, ttl: 600)
    outcomes = []
    Turns.run do
      3.times do
        Fiber.schedule do
          @locker.lock(@name, ttl: 600, wait: nil) { flunk }
        rescue Redlock::Closed
          outcomes.push(:closed)
        end
      end
      Fiber.schedule do
        sleep 0.002 until @locker.stats.waiting == 3
        @locker.close
      end
    end
    assert_equal [:closed] * 3, outcomes
    assert held.unlock
  end

  def test_nobody_has_to_wait_for_silent_servers
    silent = Array.new(3) { TCPServer.new("127.0.0.1", 0) }
    addresses = silent.map { |server| "127.0.0.1:#{server.addr[1]}" }
    locker = manager(*addresses, connect_timeout: 600, reply_timeout: 600)
    ticket = @locker.lock(@name, ttl: 600).detach
    threads = [-> { locker.lock(@name, ttl: 600, wait: nil) { flunk } }, -> { locker.adopt(ticket) { flunk } }]
    threads.map! { |call| outcome(&call) }
    silent.first(2).each(&:accept) # one has begun
    locker.close
    assert_closed(threads)
    @locker.adopt(ticket) { |lease| assert_predicate lease, :held? }
  ensure
    silent&.each(&:close)
  end

  # Whatever they do with a lock that they hold: it stays held, and an unlock that has begun is finished.
  def test_calls_on_a_lock_end_at_once
    locker = manager(reply_timeout: 600)
    leases = Array.new(4) { |i| locker.lock("#{@name}:#{i}", ttl: 600) }
    threads = unlocking = nil
    paused do
      unlocking = outcome { leases[3].unlock }
      calls = [-> { leases[0].extend }, -> { leases[1].extend_by(60) }, -> { leases[2].downgrade }]
      threads = calls.map { |call| outcome(&call) }
      eventually("they wait") { [unlocking, *threads].all? { |thread| thread.status == "sleep" } }
      locker.close
      assert_closed(threads)
      assert_predicate unlocking, :alive?
    end
    assert_equal true, unlocking.value
    leases.first(3).each do |lease|
      assert_predicate lease, :held?
      assert lease.unlock
    end
    4.times { |i| assert_free("#{@name}:#{i}") }
  end

  def test_an_unlock_that_did_not_reach_all_servers_can_be_repeated
    other = manager
    locker = manager(reply_timeout: 0.2)
    lease = locker.lock(@name, ttl: 600, wait: nil, keep_alive: true)
    paused do
      locker.close
      assert_raises(Redlock::Unreachable) { lease.unlock }
      refute_predicate lease, :held?
    end
    eventually("it is unlocked") { unlocked?(lease) }
    @locker = other
    assert_free
    eventually("the manager ends, with the last thread that is inside") { gives_closed?(lease) }
  end

  def gives_closed?(lease)
    lease.unlock
    false
  rescue Redlock::Lost
    false
  rescue Redlock::Closed
    true
  end

  # It is closed after it was checked that it is open, and before the library has got the call.
  def test_a_call_that_is_about_to_begin_ends_at_once
    other = manager
    held = other.lock(@name, ttl: 600)
    locker = @locker
    events = locker.instance_variable_get(:@servers).events
    events.define_singleton_method(:begin_call) do |lease|
      super(lease).tap { locker.close }
    end
    assert_closed([outcome { locker.lock(@name, ttl: 600, wait: nil) { flunk } }])
    assert held.unlock
    @locker = other
    assert_free
  end

  # The logger is called when the lock is taken.
  def test_a_lock_that_is_taken_meanwhile_is_released
    [{}, { reentrant: true }].each do |kind|
      locker = manager(trace: :events, logger: ->(*) { locker.close })
      assert_raises(Redlock::Closed) { locker.lock(@name, ttl: 600, **kind) { flunk } }
      assert_free
      locker = manager(trace: :events, logger: ->(*) { locker.close })
      assert_raises(Redlock::Closed) { locker.lock(@name, ttl: 600, **kind) }
      assert_free
    end
  end

  def test_nothing_stays_open
    out, = ruby_with_manager(<<~SCRIPT)
      GC.disable
      files = -> { Dir["/proc/self/fd/*"].size }
      before = files.call
      LOCKER.lock(NAME, ttl: 600) { puts files.call > before }
      other = Redlock::Manager.new(*#{SERVERS}, retry_delay: 0.004)
      other.lock(NAME, ttl: 600) { puts LOCKER.try_lock(NAME, ttl: 600).nil? }
      [LOCKER, other].each(&:close)
      puts files.call == before
    SCRIPT
    assert_equal "true\n" * 3, out
  end

  def test_a_child_closes_its_own
    @locker.lock(@name, ttl: 600) do |lease|
      in_child { @locker.close }
      lease.extend
      assert_equal :in, @locker.lock("#{@name}:b", ttl: 600) { :in }
    end
    assert_free
  end

  def test_a_block_that_has_begun_releases
    @locker.lock(@name, ttl: 600) do |lease|
      @locker.close
      assert_raises(Redlock::Closed) { lease.confirm }
    end
    eventually("it is released") { keys(@name).zero? }
  end

  def test_the_connections_are_closed
    out, = ruby_with_manager(<<~SCRIPT)
      def sockets
        files = Dir["/proc/self/fd/*"].select { |file| File.symlink?(file) }
        files.map { |file| File.readlink(file) }.grep(/socket/).size
      end
      before = sockets
      LOCKER.connect
      puts sockets > before
      LOCKER.close
      puts sockets == before
      again = Redlock::Manager.new(*#{SERVERS})
      lease = again.lock(NAME, ttl: 600)
      again.close
      puts sockets > before
      lease.unlock
      puts sockets == before
    SCRIPT
    assert_equal "true\n" * 4, out
  end

  def test_calls_that_have_begun_are_finished
    40.times do |i|
      locker = manager
      names = Array.new(4) { |k| "#{@name}:#{i}:#{k}" }
      threads = names.map { |name| Thread.new { lock_until_closed(locker, name) } }
      sleep rand(0.0..0.004)
      locker.close
      threads.each { |thread| assert thread.join(PATIENCE), "it goes on" }
      names.each { |name| assert_free(name) }
    end
  end

  def lock_until_closed(locker, name)
    loop { locker.lock(name, ttl: 600) { Thread.pass } }
  rescue Redlock::Closed
    true
  end
end
