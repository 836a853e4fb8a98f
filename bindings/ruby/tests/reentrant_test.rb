# frozen_string_literal: true

require_relative "support"

class ReentrantTest < RedlockTest
  OPTIONS = { ttl: 30, wait: 0, reentrant: true }.freeze

  def take(**options, &block)
    @locker.lock(@name, **OPTIONS.merge(options), &block)
  end

  def refused?
    manager.try_lock(@name, ttl: 30).nil?
  end

  def go_in(depth)
    take do |lease|
      assert lease.held?
      go_in(depth - 1) if depth.positive?
      assert lease.held?
      assert refused?
      :value
    end
  end

  def test_the_thread_takes_it_again
    assert_equal :value, go_in(4)
    assert_free
  end

  def test_the_last_unlock_releases_it_in_whichever_order
    [[0, 1, 2], [2, 1, 0], [1, 0, 2]].each do |order|
      leases = Array.new(3) { take }
      assert_equal 1, leases.map(&:token).uniq.size
      order.each_with_index do |which, i|
        assert refused?
        assert leases[which].unlock
        refute leases[which].held?
        assert_equal 0, leases[which].remaining
        assert_raises(Redlock::Lost) { leases[which].unlock }
        assert_equal i < 2, leases.any?(&:held?)
      end
      assert_free
    end
  end

  # In a child it is the lock of somebody else.
  def test_a_child_does_not_take_it_again
    take do
      seen = in_child do
        take { flunk }
      rescue Redlock::Error => e
        e.class
      end
      assert_equal Redlock::Taken, seen
    end
    assert_free
  end

  def test_a_lock_that_was_given_away_is_not_taken_again
    take do |lease|
      take do |inner|
        assert_raises(Redlock::InvalidArgument) { inner.detach }
      end
      ticket = lease.detach
      assert_raises(Redlock::Taken) { take { flunk } }
      @locker.adopt(ticket) { assert refused? }
      take { |other| assert other.held? }
    end
    assert_free
  end

  def test_a_kept_lock_that_is_lost_is_not_taken_again
    assert_raises(Redlock::Lost) do
      take(ttl: 1.2, keep_alive: true) do |lease|
        ask_all("DEL", @name)
        eventually("it is lost") { lease.lost? }
        assert_raises(Redlock::Lost) { take(ttl: 0.05) { flunk } }
      end
    end
    assert_free
  end

  # It is still valid, but nobody extends it any more.
  def test_a_kept_lock_that_cannot_be_kept_is_extended_to_be_taken_again
    @locker = manager(reply_timeout: 0.1)
    take(ttl: 3, wait: nil, keep_alive: true) do |lease|
      paused do
        eventually("it cannot be kept") { lease.lost? }
        assert_raises(Redlock::Lost, Redlock::Unreachable) { take(ttl: 3) { flunk } }
      end
    end
  rescue Redlock::Lost
    assert true # its time was over by then
  ensure
    ask_all("DEL", @name)
  end

  def test_others_wait
    take do
      take do
        assert_nil Thread.new { @locker.try_lock(@name, ttl: 30, reentrant: true) }.value
        assert_nil Fiber.new { @locker.try_lock(@name, ttl: 30, reentrant: true) }.resume
        assert_raises(Redlock::Nested) { @locker.lock(@name, ttl: 30, wait: 0) }
      end
    end
    @locker.lock(@name, ttl: 30) { assert_raises(Redlock::Nested) { take } }
    assert_free
  end

  def test_an_inner_lock_has_the_time_that_it_needs
    take(ttl: 100) do |outer|
      before = outer.remaining
      take { |inner| assert_operator inner.remaining, :<=, before }
      take(ttl: 500) { |inner| assert_operator inner.remaining, :>, 400 }
      assert_operator outer.remaining, :>, 400
    end
    take(keep_alive: true) do |outer|
      sleep 0.01
      before = outer.remaining
      take { |inner| assert_operator inner.remaining, :<=, before }
      refute outer.lost?
    end
    assert_free
  end

  def test_a_lock_that_is_lost_is_told_at_every_level
    assert_raises(Redlock::Lost) do
      take do |outer|
        assert_raises(Redlock::Lost) do
          take do |inner|
            ask_all("DEL", @name)
            assert_raises(Redlock::Lost) { inner.extend }
            refute inner.held? || outer.held?
            assert inner.lost?
            # It is not taken again in there.
            assert_raises(Redlock::Lost) { take }
          end
        end
        refute outer.held?
      end
    end
    take { |lease| assert lease.held? }
    assert_free
  end

  def test_an_exception_leaves_its_level
    other = manager
    take do |outer|
      assert_raises(ZeroDivisionError) { take { 1 / 0 } }
      assert outer.held?
      take(&:unlock)
      assert outer.held?
      assert_raises(Redlock::InvalidArgument) { take(&:detach) }
      ticket = outer.detach
      refute outer.held?
      other.adopt(ticket) { |taker| assert taker.held? }
    end
    assert_free(last_holder: other)
    @locker.close
    assert_raises(Redlock::Closed) { take }
    @locker = manager
  end

  def test_it_is_kept_until_the_last_level_is_left
    take(ttl: 2) do |outer|
      take(ttl: 2, keep_alive: true) { |inner| assert inner.held? }
      begun = now
      while now - begun < 3
        assert outer.held?
        sleep 0.05
      end
    end
    assert_free
  end

  def test_a_loss_is_told_to_all
    told = Thread::Queue.new
    assert_raises(Redlock::Lost) do
      take(ttl: 1, keep_alive: true) do |outer|
        outer.on_lost { told.push(:outer) }
        take(ttl: 1) do |inner|
          inner.on_lost { told.push(:inner) }
          ask_all("DEL", @name)
          assert_equal %i[inner outer], Array.new(2) { told.pop }.sort
          assert inner.lost? && outer.lost?
        end
      end
    end
    assert_free
  end

  def test_what_comes_from_outside_leaves_no_level_behind
    take do |outer|
      core = outer.instance_variable_get(:@core)
      80.times do |i|
        begin
          Timeout.timeout(0.00005 + (i * 0.00001)) { take { take { nil } } }
        rescue Timeout::Error
          nil
        end
        assert outer.held?
        assert_equal 1, core.count, i
      end
    end
    assert_free
  end

  def test_a_child_holds_nothing
    outer = take
    inner = take
    said = in_child do
      errors = [inner, outer].map do |lease|
        lease.unlock
      rescue Redlock::Error => e
        e.class
      end
      [outer.held?, inner.held?, errors, @locker.try_lock(@name, ttl: 30, reentrant: true).nil?]
    end
    assert_equal [false, false, [Redlock::Forked] * 2, true], said
    assert outer.held? && inner.held?
    inner.unlock
    outer.unlock
    assert_free
  end
end
