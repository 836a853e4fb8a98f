# frozen_string_literal: true

require "bigdecimal"
require_relative "support"

class ArgumentsTest < RedlockTest
  HUGE = [Float::INFINITY, 1e300, 10**40].freeze

  def test_ttls
    [0, -1, -0.0001, 0.0001, 0.001, -Float::INFINITY, Float::NAN, *HUGE].each do |ttl|
      error = assert_raises(Redlock::InvalidArgument) { @locker.lock(@name, ttl: ttl) { flunk } }
      assert_equal(-1, error.status)
      refute_empty error.message
    end
    [nil, "10", :ten, [], Object.new].each do |ttl|
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
    ["", nil, "x" * 65_537].each do |bad|
      assert_raises(Redlock::InvalidArgument) { @locker.lock(bad, ttl: 60) { flunk } }
      assert_raises(Redlock::InvalidArgument) { @locker.locked?(bad) }
    end
    ["", "host:0", "host:65536", "http://host", "a\0b:1"].each do |bad|
      assert_raises(Redlock::InvalidArgument) { Redlock::Manager.new(bad) }
    end
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
      "longest_ttl_ms is -1" => { longest_ttl: -0.0001 }, "cap_ms is " => { guard_cap: Float::INFINITY },
      "guard_cap is " => { guard_cap: Float::NAN } }.each do |words, bad|
      error = assert_raises(Redlock::InvalidArgument) { manager(**bad) }
      assert_includes error.message, words
    end
    assert_raises(TypeError) { manager(longest_ttl: "60") }
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
