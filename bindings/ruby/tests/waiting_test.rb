# frozen_string_literal: true

require_relative "scheduler"
require_relative "support"

# Calls that wait end at once when they are interrupted. If many wait together, each has its own end.
class WaitingTest < RedlockTest
  FOR_EVER = 600 # seconds: far more than PATIENCE

  # They are interrupted in the middle of an attempt, not between two.
  def test_servers_that_do_not_answer_hold_up_nobody
    silent = Array.new(3) { TCPServer.new("127.0.0.1", 0) }
    addresses = silent.map { |server| "127.0.0.1:#{server.addr[1]}" }
    locker = manager(*addresses, connect_timeout: FOR_EVER, reply_timeout: FOR_EVER)
    [[:kill], [:raise, IOError]].each do |interruption|
      assert_interruptible(interruption) { locker.lock(@name, ttl: 600, wait: nil) { flunk } }
    end
    assert_raises(Timeout::Error) { Timeout.timeout(0.05) { locker.lock(@name, ttl: 600, wait: 0) { flunk } } }
  ensure
    silent&.each(&:close)
  end

  def test_calls_on_a_lock_are_interruptible
    locker = manager(reply_timeout: FOR_EVER)
    lease = locker.lock(@name, ttl: 600)
    paused do
      assert_interruptible([:kill]) { lease.extend }
      assert_interruptible([:raise, IOError]) { lease.unlock }
    end
    assert_free
  end

  # The lock is taken while no thread looks. Then it is released.
  def test_a_call_that_is_interrupted_leaves_nothing_locked
    locker = manager(reply_timeout: FOR_EVER)
    locker.connect
    paused do
      assert_interruptible([:kill]) { locker.lock(@name, ttl: 600, wait: nil) { flunk } }
      assert_interruptible([:raise, IOError]) { locker.lock(@name, ttl: 600, wait: nil) }
    end
    assert_free
  end

  def test_an_interruption_that_is_masked_waits
    holder = manager.lock(@name, ttl: 600)
    thread = Thread.new do
      Thread.handle_interrupt(IOError => :never) { @locker.lock(@name, ttl: 600, wait: nil) { :got_it } }
    rescue IOError
      :late
    end
    eventually("it waits") { thread.status == "sleep" }
    thread.raise(IOError)
    holder.unlock
    assert_equal :late, thread.value
    assert_free
  end

  # The first in the queue waits for all others.
  def test_who_leads_hands_on
    holders = Array.new(4) { |i| manager.lock("#{@name}:#{i}", ttl: 600) }
    waiters = Array.new(4) { |i| begin_to_wait("#{@name}:#{i}") }
    waiters[0].kill
    holders[2].unlock
    assert waiters[2].join(PATIENCE), "it waits for ever"
    waiters[1].raise(IOError)
    holders[3].unlock
    assert waiters[3].join(PATIENCE), "it waits for ever"
    holders[0..1].each(&:unlock)
    assert_raises(IOError) { waiters[1].join }
    4.times { |i| assert_free("#{@name}:#{i}") }
  end

  def begin_to_wait(name)
    thread = Thread.new { @locker.lock(name, ttl: 600, wait: nil) { name } }
    thread.report_on_exception = false
    eventually("it waits") { thread.status == "sleep" }
    thread
  end

  def test_threads_that_wait_and_are_killed_and_go_on
    names = Array.new(8) { |i| "#{@name}:#{i % 3}" }
    counts = Array.new(8, 0)
    going = true
    threads = names.each_with_index.map do |name, i|
      Thread.new { @locker.lock(name, ttl: 600, wait: nil) { counts[i] += 1 } while going }
    end
    victims = Array.new(60) do |i|
      victim = Thread.new { @locker.lock(names[i % 8], ttl: 600, wait: nil) { Thread.pass } }
      sleep rand(0.0..0.002)
      victim.kill
    end
    victims.each { |victim| assert victim.join(PATIENCE), "it went on" }
    eventually("all of them had it") { counts.all?(&:positive?) }
    going = false
    threads.each { |thread| assert thread.join(PATIENCE), "it waits for ever" }
    3.times { |i| assert_free("#{@name}:#{i}") }
  ensure
    going = false
  end

  def test_where_there_is_no_descriptor
    locker = manager
    events = locker.instance_variable_get(:@servers).events
    events.define_singleton_method(:descriptor) { -1 }
    counter = 0
    Array.new(4) { Thread.new { locker.lock(@name, ttl: 600, wait: nil) { counter += 1 } } }.each(&:join)
    Turns.run { 4.times { Fiber.schedule { locker.lock(@name, ttl: 600, wait: nil) { counter += 1 } } } } if schedulers?
    assert_equal schedulers? ? 8 : 4, counter
    assert_free
  end

  def test_who_waits_is_in_the_queue_on_the_servers_unless_it_is_not_to_be_woken
    held = manager.lock(@name, ttl: 600)
    [{}, { waking: true }, { waking: false }].each do |options|
      locker = manager(**options)
      waiter = Thread.new { locker.lock(@name, ttl: 600, wait: nil) { flunk } }
      if options[:waking] == false
        eventually("it asks now and then") { locker.stats.attempts > 2 }
        assert_equal 0, keys("#{@name}:w")
      else
        eventually("it is in the queue") { keys("#{@name}:w") > SERVERS.size / 2 }
      end
      waiter.kill.join
      ask_all("DEL", "#{@name}:w")
    end
    held.unlock
    assert_free
  end

  # Also servers whose names have to be looked up.
  def test_servers_with_names
    locker = manager(*SERVERS.map { |server| server.sub("127.0.0.1", "localhost") })
    assert_equal :in, locker.lock(@name, ttl: 600) { :in }
    assert_free
  end

  def assert_interruptible(interruption, &call)
    thread = Thread.new(&call)
    thread.report_on_exception = false
    eventually("it waits") { thread.status == "sleep" }
    sleep rand(0.0..0.02) # perhaps it waits for something else first
    thread.__send__(*interruption)
    assert_raises(*interruption.drop(1)) { thread.join(PATIENCE) or flunk "it went on" } if interruption[1]
    assert thread.join(PATIENCE), "it went on" unless interruption[1]
  end
end

class FibersTest < RedlockTest
  def setup
    super
    skip "there are no schedulers before Ruby 3.1" unless schedulers?
  end

  # The waiting fiber must give way to the holding fiber, because they share a thread.
  def test_fibers_of_one_thread_exclude_each_other
    seen = []
    Turns.run do
      %w[a b c].each do |who|
        Fiber.schedule do
          @locker.lock(@name, ttl: 600, wait: nil) { seen.push(who); sleep 0.002; seen.push(who) }
        end
      end
    end
    assert_equal %w[a b c], seen.each_slice(2).map { |first, last| first if first == last }.sort
    assert_free
  end

  # As threads do.
  def test_fibers_get_it_in_their_order_and_equally_often
    order = []
    first = @locker.lock(@name, ttl: 600)
    Turns.run do
      40.times do |i|
        Fiber.schedule { 10.times { @locker.lock(@name, ttl: 600, wait: nil) { in_turn(i, order) } } }
      end
      Fiber.schedule do
        sleep 0.002 until @locker.stats.waiting == 40
        first.unlock
      end
    end
    assert_equal (0...40).to_a * 10, order
    assert_free
  end

  def in_turn(who, order)
    order.push(who)
    left = 400 - order.size
    sleep 0.002 until @locker.stats.waiting == [left, 39].min
  end

  def test_hundreds_of_fibers_wait_in_one_thread
    counts = Hash.new(0)
    Turns.run do
      300.times { |i| Fiber.schedule { use_fully("#{@name}:#{i % 3}") { |name| counts[name] += 1 } } }
    end
    assert_equal [100] * 3, counts.values
    3.times { |i| assert_free("#{@name}:#{i}") }
  end

  def use_fully(name)
    @locker.lock(name, ttl: 600, wait: nil) do |lease|
      lease.extend
      lease.confirm
      yield name
    end
  end

  # The holder is a fiber of that very thread, which goes on while the others wait.
  def test_a_call_blocks_its_fiber_alone
    held = manager.lock(@name, ttl: 600)
    got = 0
    Turns.run do
      20.times { Fiber.schedule { @locker.lock(@name, ttl: 600, wait: nil) { got += 1 } } }
      Fiber.schedule do
        sleep 0.01
        assert_equal 0, got
        held.unlock
      end
    end
    assert_equal 20, got
    assert_free
  end

  def test_threads_and_the_fibers_of_others_share_a_manager
    count = 0
    ways = Array.new(6) do |i|
      Thread.new do
        work = -> { 10.times { @locker.lock("#{@name}:#{i % 2}", ttl: 600, wait: nil) { count += 1 } } }
        i.even? ? work.call : Turns.run { 3.times { Fiber.schedule(&work) } }
      end
    end
    ways.each { |thread| assert thread.join(PATIENCE), "it waits for ever" }
    assert_equal 120, count
    2.times { |i| assert_free("#{@name}:#{i}") }
  end

  # Other threads do not have to wait for this thread while its fibers do not get their turn.
  def test_a_thread_that_does_something_else_holds_up_no_other
    manager.lock(@name, ttl: 600) do
      waiting = Queue.new
      go_on = Queue.new
      thread = Thread.new do
        Turns.run do
          fiber = Fiber.schedule { @locker.lock(@name, ttl: 600, wait: nil) { flunk } }
          waiting.push(true)
          Fiber.new(blocking: true) { go_on.pop }.resume
          fiber.raise(IOError)
        rescue IOError
          nil
        end
      end
      waiting.pop
      20.times { @locker.lock("#{@name}:other", ttl: 600) { nil } }
      go_on.push(true)
      assert thread.join(PATIENCE)
    end
    assert_free
  end

  def test_a_fiber_that_is_interrupted
    held = manager.lock(@name, ttl: 600)
    outcomes = []
    Turns.run do
      fibers = Array.new(3) do |i|
        Fiber.schedule do
          outcomes.push(@locker.lock(@name, ttl: 600, wait: nil) { i })
        rescue IOError
          outcomes.push(:stopped)
        end
      end
      Fiber.schedule do
        fibers[0].raise(IOError) # the one that waits for the others, too
        held.unlock
      end
    end
    assert_equal [1, 2, :stopped], outcomes.sort_by(&:to_s)
    assert_free
  end
end
