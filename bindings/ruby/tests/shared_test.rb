# frozen_string_literal: true

require_relative "support"

class SharedTest < RedlockTest
  def test_readers_share_and_a_writer_is_alone
    other = manager
    @locker.lock(@name, ttl: 60, shared: true) do |one|
      other.lock(@name, ttl: 60, shared: true) do |two|
        assert([one, two].all? { |lease| lease.shared? && lease.held? })
        info = other.info(@name)
        assert_equal [true, true, 2], [info.locked, info.shared, info.readers]
        one.extend(ttl: 120)
        assert_operator one.remaining, :>, 60
        two.confirm(least: 1)
        assert_nil manager.try_lock(@name, ttl: 60)
      end
    end
    @locker.lock(@name, ttl: 60) do |writer|
      refute writer.shared?
      assert_nil other.try_lock(@name, ttl: 60, shared: true)
    end
  end

  def test_readers_may_nest_and_nothing_else
    @locker.lock(@name, ttl: 60, shared: true) do
      @locker.lock(@name, ttl: 60, shared: true) { assert_equal 2, @locker.info(@name).readers }
      assert_raises(Redlock::Nested) { @locker.lock(@name, ttl: 60) }
    end
    @locker.lock(@name, ttl: 60) do
      assert_raises(Redlock::Nested) { @locker.lock(@name, ttl: 60, shared: true) }
    end
  end

  def test_a_writer_becomes_a_reader
    lease = @locker.lock(@name, ttl: 60)
    lease.downgrade
    assert lease.shared?
    beside = manager.lock(@name, ttl: 60, shared: true)
    lease.unlock
    beside.unlock
    assert_raises(Redlock::Lost) { lease.downgrade }
  end
end
