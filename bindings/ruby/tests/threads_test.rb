# frozen_string_literal: true

require_relative "support"

class ThreadsTest < RedlockTest
  def test_threads_exclude_each_other
    lockers = [@locker, manager]
    counter = 0
    threads = Array.new(16) do |i|
      Thread.new do
        8.times do
          lockers[i % 2].lock(@name, ttl: 60, wait: nil) do
            seen = counter
            Thread.pass
            counter = seen + 1
          end
        end
      end
    end
    threads.each(&:join)
    assert_equal 128, counter
    assert_free
  end

  def test_a_waiter_gets_the_lock_when_it_is_free
    lease = @locker.lock(@name, ttl: 600)
    waiter = Thread.new { @locker.lock(@name, ttl: 600, wait: nil) { :got_it } }
    eventually("it waits") { waiter.status == "sleep" }
    lease.unlock
    assert_equal :got_it, waiter.value
  end

  def test_other_threads_run_while_one_waits_for_a_lock
    manager.lock(@name, ttl: 600) do
      waiter = Thread.new { @locker.lock(@name, ttl: 600, wait: nil) }
      eventually("it waits") { waiter.status == "sleep" }
      # Each of these would have to wait for the end of an endless wait.
      1000.times { Thread.pass }
      assert waiter.alive?
      waiter.kill.join
    end
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
    assert_raises(Redlock::Unreachable) { locker.connect(timeout: 0.05) }
  ensure
    counter&.kill
    silent&.each(&:close)
  end

  # Each of them waits again before the next one is let go, so none can overtake another by luck.
  def test_those_who_wait_get_it_in_their_order_and_equally_often
    first = @locker.lock(@name, ttl: 600)
    order = []
    threads = Array.new(WAITERS) do |i|
      thread = Thread.new { ROUNDS.times { in_turn(i, order) } }
      eventually("it waits") { @locker.stats.waiting == i + 1 }
      thread
    end
    first.unlock
    threads.each { |thread| assert thread.join(PATIENCE), "it waits for ever" }
    assert_equal (0...WAITERS).to_a * ROUNDS, order
    assert_free
  end

  WAITERS = 40
  ROUNDS = 10

  def in_turn(who, order)
    @locker.lock(@name, ttl: 600, wait: nil) do
      order.push(who)
      left = WAITERS * ROUNDS - order.size
      eventually("all others wait") { @locker.stats.waiting == [left, WAITERS - 1].min }
    end
  end

  # The limit of a wait is for children of signal handlers. Nobody else may need it.
  def test_those_whose_calls_end_are_woken
    out, words = ruby_with_manager(<<~SCRIPT)
      events = Redlock.const_get(:Events)
      events.__send__(:remove_const, :PATIENCE)
      events.const_set(:PATIENCE, 600)
      threads = Array.new(8) { |i| Thread.new { 100.times { LOCKER.lock(NAME + (i % 4).to_s, ttl: 600, wait: nil) { Thread.pass } } } }
      puts threads.all? { |thread| thread.join(#{PATIENCE}) }
    SCRIPT
    assert_equal ["true\n", ""], [out, words]
  end

  def test_hundreds_of_threads
    counter = 0
    threads = Array.new(300) { Thread.new { @locker.lock(@name, ttl: 600, wait: nil) { counter += 1 } } }
    threads.each(&:join)
    assert_equal 300, counter
    assert_free
  end

  def test_the_end_of_the_program_does_not_wait_for_those_who_wait
    holder = manager.lock(@name, ttl: 600)
    out, words = ruby_with_manager(<<~SCRIPT)
      thread = Thread.new { LOCKER.lock(NAME, ttl: 600, wait: nil) }
      Thread.pass until thread.status == "sleep"
      puts "the end"
    SCRIPT
    assert_equal ["the end\n", ""], [out, words]
    holder.unlock
    assert_free
  end
end
