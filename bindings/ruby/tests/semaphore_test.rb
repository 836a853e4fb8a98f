# frozen_string_literal: true

require_relative "support"

class SemaphoreTest < RedlockTest
  def test_so_many_have_one_and_no_more
    semaphore = @locker.semaphore(@name, permits: 2, ttl: 30)
    result = semaphore.acquire do |one|
      two = semaphore.acquire
      assert one.held? && two.held?
      assert_equal @name, two.resource
      assert_equal 2, semaphore.taken
      assert_nil semaphore.try_acquire
      assert_raises(Redlock::Taken) { semaphore.acquire(wait: 0.1) }
      theirs = manager.semaphore(@name, permits: 2, ttl: 30)
      assert_nil(theirs.try_acquire { flunk "there is none" })
      info = manager.info(@name, permits: 2)
      assert_equal [true, 2], [info.locked, info.permits_taken]
      two.unlock
      theirs.try_acquire { |three| three.extend(ttl: 60) }
      :value
    end
    assert_equal :value, result
    assert_equal 0, semaphore.taken
  end

  def test_who_locks_the_name_uses_one
    semaphore = @locker.semaphore(@name, permits: 1, ttl: 30)
    @locker.lock(@name, ttl: 30) { assert_nil semaphore.try_acquire }
    semaphore.acquire { assert_raises(Redlock::Taken) { manager.lock(@name, ttl: 1, wait: 0) } }
    # The same caller, too.
    more = @locker.semaphore(@name, permits: 2, ttl: 30)
    assert_equal :in, @locker.lock(@name, ttl: 30) { more.acquire(wait: 0) { :in } }
  end

  def test_a_permit_is_kept
    semaphore = @locker.semaphore(@name, permits: 2, ttl: 0.4, keep_alive: true)
    semaphore.acquire do |lease|
      sleep 1
      assert lease.held?
    end
    semaphore.try_acquire { assert_equal 1, @locker.stats.kept }
    assert_equal 0, @locker.stats.kept
  end

  # It goes on in a fiber of its own, and ends wherever that ends.
  def test_a_permit_is_released_wherever_its_block_ends
    [false, true].each do |keeps|
      semaphore = @locker.semaphore(@name, permits: 3, ttl: 600, keep_alive: keeps)
      outer = Enumerator.new { |on| semaphore.acquire { |lease| on << lease } }
      inner = Enumerator.new { |on| semaphore.acquire { |lease| on << lease } }
      leases = [outer.next, inner.next]
      assert_equal 2, semaphore.taken
      assert_raises(StopIteration) { outer.next }
      assert_equal [1, [false, true]], [semaphore.taken, leases.map(&:held?)]
      assert_raises(StopIteration) { inner.next }
      assert_equal [0, 0], [semaphore.taken, @locker.stats.kept]
    end
  end

  # Nobody can end its block any more.
  def test_a_permit_of_a_dropped_block_is_not_kept
    out, words = ruby_with_manager(<<~SCRIPT)
      semaphore = LOCKER.semaphore(NAME, permits: 2, ttl: 1, keep_alive: true)
      take = -> { Enumerator.new { |on| semaphore.acquire { |lease| on << lease.held? } }.next }
      again = -> { Enumerator.new { |on| LOCKER.lock(NAME + "r", ttl: 1, keep_alive: true, reentrant: true) { |it| on << it.held? } }.next }
      puts Thread.new(&take).value, Thread.new(&again).value
      GC.start until LOCKER.stats.kept.zero?
      free = lambda do
        semaphore.taken.zero? && !LOCKER.locked?(NAME + "r")
      rescue Redlock::Unreachable
        false # one server is down, and one of the others still has what the other has no more
      end
      sleep 0.002 until free.call
      sleep 0.002 while Thread.list.size > 1
      puts "the end"
    SCRIPT
    assert_equal ["true\ntrue\nthe end\n", ""], [out, words]
  end

  def test_threads_share_it
    semaphore = @locker.semaphore(@name, permits: 3, ttl: 30)
    inside = 0
    guard = Mutex.new
    most = []
    work = lambda do
      10.times do
        semaphore.acquire(wait: 60) do
          guard.synchronize { most << (inside += 1) }
          Thread.pass
          guard.synchronize { inside -= 1 }
        end
      end
    end
    Array.new(6) { Thread.new(&work) }.each(&:join)
    assert_equal 60, most.size
    assert_operator most.max, :<=, 3
  end

  def test_what_is_wrong_is_said
    [0, -1].each do |permits|
      assert_raises(Redlock::InvalidArgument) { @locker.semaphore(@name, permits: permits, ttl: 30) }
    end
    [257, 2**40].each do |permits|
      semaphore = @locker.semaphore(@name, permits: permits, ttl: 30)
      assert_raises(Redlock::InvalidArgument) { semaphore.acquire }
    end
    fencing = manager(fencing: true).semaphore(@name, permits: 2, ttl: 30)
    assert_raises(Redlock::InvalidArgument) { fencing.acquire }
  end
end
