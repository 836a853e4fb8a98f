# frozen_string_literal: true

require_relative "support"

class BlockTest < RedlockTest
  def test_the_block_has_the_lock_and_gives_its_value
    result = @locker.lock(@name, ttl: 30) do |lease|
      assert lease.held?
      assert_operator lease.remaining, :>, 0
      assert_operator lease.remaining, :<, 30
      assert_equal @name, lease.resource
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

  def test_throw_and_break_and_next_and_return_release
    catch(:out) { @locker.lock(@name, ttl: 600) { throw :out } }
    assert_free
    @locker.lock(@name, ttl: 600) { break }
    assert_free
    assert_equal 5, @locker.lock(@name, ttl: 600) { next 5 }
    assert_free
    returning
    assert_free
  end

  def returning
    @locker.lock(@name, ttl: 600) { return }
  end

  def test_a_stack_that_overflows_releases
    assert_raises(SystemStackError) { @locker.lock(@name, ttl: 600) { overflow } }
    assert_free
  end

  def overflow
    overflow + 1
  end

  def test_exit_releases
    ruby_with_manager("LOCKER.lock(NAME, ttl: 600) { exit }")
    assert_free
    ruby_with_manager("LOCKER.lock(NAME, ttl: 600) { at_exit { puts 1 }; abort 'enough' }")
    assert_free
  end

  def test_a_block_may_release_early
    @locker.lock(@name, ttl: 600) do |lease|
      lease.unlock
      assert_free
      @locker.lock(@name, ttl: 600) { assert true } # not nested: the outer one is over
    end
  end

  def test_a_lock_that_ran_out_before_the_block_ended_is_lost
    assert_raises(Redlock::Lost) do
      @locker.lock(@name, ttl: 0.1) { eventually("it expires") { gone? } }
    end
    error = assert_raises(RuntimeError) do
      @locker.lock(@name, ttl: 0.1) do |lease|
        eventually("it expires") { !lease.held? }
        raise "the block's own"
      end
    end
    assert_equal "the block's own", error.message
  end

  def test_locks_are_not_reentrant
    @locker.lock(@name, ttl: 600) do |outer|
      [0, 30, nil].each do |wait|
        error = assert_raises(Redlock::Nested) do
          @locker.lock(@name.to_sym, ttl: 600, wait: wait) { flunk }
        end
        assert_kind_of Redlock::Taken, error
        assert_match(/not reentrant/, error.message)
      end
      assert_nil @locker.try_lock(@name, ttl: 600) { flunk }
      @locker.lock("#{@name}:other", ttl: 600) { assert outer.confirm }
      beside = -> { assert_raises(Redlock::Taken) { @locker.lock(@name, ttl: 600, wait: 0) } }
      error = Thread.new(&beside).value
      assert_instance_of Redlock::Taken, error
    end
    @locker.lock(@name, ttl: 600) { assert true } # one after the other is another matter
    assert_free
  end

  def test_without_a_block_the_lease_is_the_callers
    lease = @locker.lock(@name, ttl: 600)
    assert manager.locked?(@name)
    assert lease.unlock
    2.times { assert_raises(Redlock::Lost) { lease.unlock } }
    refute lease.held?
    assert_equal 0, lease.remaining
    assert_free
  end

  def test_try_lock
    assert_equal 7, @locker.try_lock(@name, ttl: 600) { 7 }
    lease = @locker.try_lock(@name, ttl: 600)
    assert_nil manager.try_lock(@name, ttl: 600)
    assert_nil manager.try_lock(@name, ttl: 600) { flunk }
    lease.unlock
    error = assert_raises(Redlock::Taken) do
      @locker.try_lock(@name, ttl: 600) { raise Redlock::Taken, "another" }
    end
    assert_equal "another", error.message
    assert_free
  end

  def test_names_may_be_symbols_or_any_bytes_but_nul
    @locker.lock(@name.to_sym, ttl: 600) { assert manager.locked?(@name) }
    ["#{@name}:Grüße, 東京", "#{@name}\xFF\n\u00e9".b].each do |odd|
      @locker.lock(odd, ttl: 600) do |lease|
        assert manager.locked?(odd)
        assert_operator keys(odd), :>, SERVERS.size / 2
        assert_equal odd, lease.resource
      end
      assert_free(odd)
    end
    assert_raises(Redlock::InvalidArgument) { @locker.lock("#{@name}\0x", ttl: 600) { flunk } }
    assert_raises(Redlock::InvalidArgument) { @locker.locked?("#{@name}\0x") }
  end
end

class LeaseTest < RedlockTest
  def test_extend_and_confirm
    @locker.lock(@name, ttl: 5) do |lease|
      lease.extend(ttl: 60)
      assert_operator lease.remaining, :>, 30
      assert lease.confirm(least: 30)
      error = assert_raises(Redlock::TooShort) { lease.confirm(least: 90) }
      assert_equal 7, error.status
      assert lease.held?
      assert lease.extend
    end
  end

  def test_what_has_ended_is_lost_and_the_next_holder_is_left_alone
    lease = @locker.lock(@name, ttl: 0.1)
    eventually("it expires") { !lease.held? && gone? }
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
end
