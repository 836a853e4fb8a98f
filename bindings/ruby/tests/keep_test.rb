# frozen_string_literal: true

require_relative "scheduler"
require_relative "support"

# Kept locks.
class KeepTest < RedlockTest
  TTL = 1.5

  def test_a_lock_is_kept_until_the_block_ends
    result = @locker.lock(@name, ttl: TTL, keep_alive: true) do |lease|
      assert_kept(lease)
      refute lease.lost?
      :value
    end
    assert_equal :value, result
    assert_free
  end

  # It is extended although this thread never yields, and makes no call to the manager.
  def assert_kept(lease)
    lefts = [lease.remaining] * 2
    lefts = [lefts.last, lease.remaining] until lefts.last > lefts.first || lefts.last.zero?
    assert lease.held?
  end

  def test_a_lock_that_is_kept_later_and_with_another_ttl
    lease = @locker.try_lock(@name, ttl: 600)
    assert lease.keep_alive
    lease.extend(ttl: 700)
    assert_operator lease.remaining, :>, 600
    refute lease.lost?
    lease.unlock
    refute lease.lost?
    assert_raises(Redlock::Lost) { lease.keep_alive }
    @locker.try_lock(@name, ttl: 600, keep_alive: true) { |kept| assert kept.held? }
    assert_free
  end

  def test_a_lock_that_a_majority_has_lost_is_told
    told = Queue.new
    assert_raises(Redlock::Lost) do
      @locker.lock(@name, ttl: TTL, keep_alive: true) do |lease|
        assert_same(lease, lease.on_lost { |left| told.push(left) })
        lose(lease)
        assert_operator popped(told), :>=, 0
        lease.on_lost { |left| told.push(left) } # it is known already
        assert_operator popped(told), :>=, 0
        assert lease.lost?
      end
    end
    assert_empty told
    assert_free
  end

  def popped(queue)
    eventually("it is told") { !queue.empty? }
    queue.pop
  end

  def lose(lease)
    eventually("all have it") { keys(@name) >= SERVERS.count { |server| ask(server, "PING") } }
    ask_all("DEL", @name)
    eventually("it is lost") { lease.lost? }
  end

  def test_the_job_can_be_interrupted
    job = Thread.new do
      Thread.current.report_on_exception = false
      @locker.lock(@name, ttl: TTL, keep_alive: true) do |lease|
        lease.on_lost { job.raise(IOError, "lost") }
        ask_all("DEL", @name) until lease.lost?
        sleep
      end
    end
    error = assert_raises(IOError) { job.join(PATIENCE) }
    assert_equal "lost", error.message
    assert_free
  end

  def test_nobody_is_told_of_a_lock_that_was_unlocked
    told = false
    @locker.lock(@name, ttl: TTL, keep_alive: true) { |lease| lease.on_lost { told = true } }
    lease = @locker.lock(@name, ttl: 600)
    refute lease.lost?
    lease.unlock
    refute told
    assert_raises(ArgumentError) { lease.on_lost }
  end

  def test_a_lock_that_is_not_kept_is_lost_when_it_is_over
    lease = @locker.lock(@name, ttl: 0.05)
    eventually("it is over") { lease.lost? }
    refute lease.held?
  end

  def test_the_loss_of_a_lock_that_is_over_is_told_by_its_unlock
    told = Queue.new
    lease = @locker.lock(@name, ttl: 0.05)
    lease.on_lost { |left| told.push(left) }
    eventually("it is over") { !lease.held? && gone? }
    assert_raises(Redlock::Lost) { lease.unlock }
    assert_equal 0, popped(told)
    assert lease.lost?
  end

  # While calls come and go, in threads and in fibers.
  def test_a_loss_is_told_whoever_hears_of_it_first
    told = Queue.new
    going = true
    calls = Thread.new { @locker.lock("#{@name}:other", ttl: 600) { nil } while going }
    lease = @locker.lock(@name, ttl: TTL, keep_alive: true)
    lease.on_lost { |left| told.push(left) }
    lose(lease)
    going = false
    popped(told)
    calls.join
    assert_raises(Redlock::Lost) { lease.unlock }
    assert_empty told
  ensure
    going = false
  end

  def test_its_threads_end_with_it
    before = Thread.list
    @locker.lock(@name, ttl: 600, keep_alive: true) do
      @locker.lock("#{@name}:inner", ttl: 600, keep_alive: true) { nil }
      refute_empty Thread.list - before
    end
    eventually("it has ended") { (Thread.list - before).empty? }
    out, words = ruby_with_manager("LOCKER.lock(NAME, ttl: 600, keep_alive: true) { |it| puts it.held? }\nLOCKER.close")
    assert_equal ["true\n", ""], [out, words]
    out, words = ruby_with_manager("LOCKER.lock(NAME, ttl: 600, keep_alive: true) { exit }")
    assert_equal ["", ""], [out, words]
    assert_free
  end

  def test_who_is_killed_keeps_nothing
    holding = Queue.new
    thread = Thread.new { @locker.lock(@name, ttl: 600, keep_alive: true) { holding.push(true); sleep } }
    holding.pop
    thread.kill.join
    assert_free
  end

  def test_a_child_keeps_its_own_locks_and_not_those_of_its_parent
    @locker.lock(@name, ttl: TTL, keep_alive: true) do |lease|
      mine = "#{@name}:child"
      seen = in_child do
        losses = @locker.lock(mine, ttl: TTL, keep_alive: true) do |own|
          assert_kept(own)
          [lease.lost?, own.lost?]
        end
        # Nothing is left to be watched over.
        eventually("its thread has ended") { Thread.list.size == 1 }
        losses
      end
      assert_equal [true, false], seen
      assert_free(mine)
      assert_kept(lease)
    end
  end

  def test_a_job_in_a_fiber
    skip "there are no schedulers before Ruby 3.1" unless schedulers?
    told = Queue.new
    Turns.run do
      Fiber.schedule do
        @locker.lock(@name, ttl: TTL, keep_alive: true) do |lease|
          lease.on_lost { told.push(true) }
          Thread.new { lose(lease) }.join
        end
      rescue Redlock::Lost
        told.push(:lost)
      end
    end
    assert_equal ["lost", "true"], [popped(told), popped(told)].map(&:to_s).sort
  end
end
