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

  def test_for_how_long_it_is_held_is_told
    free = { locked: false, remaining: 0, shared: false, readers: 0 }
    assert_equal free, @locker.info(@name).to_h.slice(*free.keys)
    @locker.lock(@name, ttl: 60) do
      info = manager.info(@name)
      assert info.locked
      assert_operator info.remaining, :>, 30
      assert_operator info.remaining, :<=, 60
      assert_equal [false, 0], [info.shared, info.readers]
    end
    ["", "a\0b"].each { |bad| assert_raises(Redlock::InvalidArgument) { @locker.info(bad) } }
  end

  def test_a_key_that_has_no_end_is_held_for_ever
    ask_all("SET", @name, "by hand")
    assert_equal [true, Float::INFINITY], @locker.info(@name).to_h.values_at(:locked, :remaining)
  ensure
    ask_all("DEL", @name)
  end

  def test_a_lock_is_extended_by_more_than_is_left
    [0.01, 0.2].each do |drift|
      lease = manager(drift_factor: drift).lock(@name, ttl: 100)
      20.times do
        start = now
        before = lease.remaining
        lease.extend_by(50)
        after = lease.remaining
        # Some of it has passed by now.
        assert_operator after, :>=, before + 50 - (now - start) - 0.01
        assert_operator after, :<=, before + 50.1
      end
      assert_raises(Redlock::InvalidArgument) { lease.extend_by(0) }
      assert_raises(Redlock::InvalidArgument) { lease.extend_by(1e14) }
      lease.unlock
      assert_raises(Redlock::Lost) { lease.extend_by(1) }
    end
  end

  def test_several_are_locked_at_once
    names = [@name, "#{@name}:b", "#{@name}:c"]
    @locker.lock(names, ttl: 30) do |lease|
      assert_equal [@name, names], [lease.resource, lease.resources]
      names.each do |name|
        assert manager.locked?(name)
        assert_nil manager.try_lock(name, ttl: 30)
        assert_raises(Redlock::Nested) { @locker.lock(["#{name}:x", name], ttl: 30, wait: 0) { flunk } }
      end
      taken = assert_raises(Redlock::Taken) { manager.lock(["#{@name}:x", names[1]], ttl: 30, wait: 0) }
      assert_includes taken.message, "resource 2 of 2 held"
      lease.extend(ttl: 60)
      lease.confirm(least: 30)
    end
    names.each { |name| refute @locker.locked?(name) }
    ticket = @locker.lock(names.reverse, ttl: 30, keep_alive: true).detach
    @locker.adopt(ticket) do |taker|
      assert_equal names.reverse, taker.resources
      assert taker.extend # for what was left
    end
    [[], %w[a a], ["a", ""], ["a", "b\0"], ["a"] * 129].each do |bad|
      assert_raises(Redlock::InvalidArgument) { @locker.lock(bad, ttl: 30) { flunk } }
    end
    assert_free
  end

  def test_a_lock_changes_hands
    token = ticket = nil
    @locker.lock(@name, ttl: 30) do |giver|
      token = giver.token
      ticket = giver.detach
      refute giver.held?
      assert_includes ticket, token
      assert_raises(Redlock::Lost) { giver.extend }
      assert_raises(Redlock::Lost) { giver.detach }
    end
    assert @locker.locked?(@name), "the block released it"
    other = manager
    result = other.adopt(ticket, keep_alive: true) do |taker|
      assert_equal [@name, token], [taker.resource, taker.token]
      assert_operator taker.remaining, :>, 10
      assert_operator taker.remaining, :<, 30
      taker.extend(ttl: 60)
      assert_operator taker.remaining, :>, 30
      assert_raises(Redlock::Taken) { @locker.lock(@name, ttl: 1, wait: 0) }
      :value
    end
    assert_equal :value, result
    assert_free(last_holder: other)
    assert_raises(Redlock::Lost) { other.adopt(ticket) }
    ["", "no ticket", ticket.chop, "#{ticket}\0", "#{ticket} "].each do |bad|
      assert_raises(Redlock::InvalidArgument) { other.adopt(bad) }
    end
  end

  def test_an_adopted_lock_is_extended_by_what_it_lasted
    locker = manager(drift_factor: 0.2)
    locker.adopt(locker.lock(@name, ttl: 600).detach) do |lease|
      lasted = lease.remaining
      eventually("some of it has passed") { lease.remaining < lasted - 0.1 }
      start = now
      lease.extend
      left = lease.remaining
      assert_operator left, :>=, lasted - (now - start) - 0.01
    end
  end

  def test_an_exception_releases
    assert_raises(ZeroDivisionError) { @locker.lock(@name, ttl: 600) { 1 / 0 } }
    assert_free
  end

  # The block has held it to its end.
  def test_a_block_whose_release_reaches_nobody_has_its_value
    locker = manager(reply_timeout: 0.2)
    value = locker.lock(@name, ttl: 600, wait: nil) do
      ask_all("CLIENT", "PAUSE", "600000", "WRITE")
      :value
    end
    assert_equal :value, value
  ensure
    ask_all("CLIENT", "UNPAUSE")
    ask_all("DEL", @name)
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
        assert_match(/set reentrant: true/, error.message)
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

  # The same bytes are one key, whatever the encoding of the string.
  def test_a_name_in_another_encoding_is_the_same
    name = "#{@name}:Grüße"
    [[name, name.b], [name.b, name], [name, name.dup.force_encoding("ISO-8859-1")]].each do |first, second|
      @locker.lock([first, "#{@name}:b"], ttl: 600) do
        error = assert_raises(Redlock::Nested) { @locker.lock(second, ttl: 600, wait: nil) { flunk } }
        assert_includes error.message, first.inspect
      end
      @locker.lock([first, "#{@name}:b"], ttl: 600, reentrant: true) do |lease|
        @locker.lock(second, ttl: 600, wait: 0, reentrant: true) { |inner| assert_equal lease.token, inner.token }
      end
      ticket = @locker.lock(first, ttl: 600).detach
      @locker.adopt(ticket) { assert_raises(Redlock::Nested) { @locker.lock(second, ttl: 600, wait: nil) { flunk } } }
    end
    other = name.encode("ISO-8859-1") # other bytes
    @locker.lock(name, ttl: 600) { @locker.lock(other, ttl: 600, wait: 0) { |lease| assert_equal other, lease.resource } }
    assert_free(name)
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
  def test_others_are_kept_out_for_a_time
    [{}, { reentrant: true }, { keep_alive: true }].each do |kind|
      name = "#{@name}:#{kind.keys}"
      @locker.lock(name, ttl: 600, **kind) do |lease|
        [601, -1].each { |bad| assert_raises(Redlock::InvalidArgument) { lease.unlock(hold_at_least: bad) } }
        assert_raises(TypeError) { lease.unlock(hold_at_least: "5") }
        assert lease.confirm
        assert lease.unlock(hold_at_least: 300)
        refute lease.held?
        refute lease.lost?
      end
      info = @locker.info(name)
      assert_operator info.remaining, :<=, 300
      assert_nil manager.try_lock(name, ttl: 600)
      ask_all("DEL", name)
    end
    assert_equal 0, @locker.stats.kept
    # The end of the block releases a lock of which the time was refused.
    assert_raises(Redlock::InvalidArgument) { @locker.lock(@name, ttl: 600) { |lease| lease.unlock(hold_at_least: 700) } }
    assert_free
    @locker.lock(@name, ttl: 600, shared: true) do |lease|
      assert_raises(Redlock::InvalidArgument) { lease.unlock(hold_at_least: 1) }
      assert lease.confirm
    end
    assert_free
  end

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
