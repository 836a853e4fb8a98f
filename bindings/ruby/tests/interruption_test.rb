# frozen_string_literal: true

require_relative "support"

# Interruptions from outside at any moment leave nothing locked.
class InterruptionTest < RedlockTest
  def test_timeout_in_the_block_releases
    assert_raises(Timeout::Error) do
      Timeout.timeout(0.1) { @locker.lock(@name, ttl: 600) { sleep } }
    end
    assert_free
  end

  def test_timeout_ends_the_waiting
    holder = manager.lock(@name, ttl: 600)
    assert_raises(Timeout::Error) do
      Timeout.timeout(0.1) { @locker.lock(@name, ttl: 600, wait: nil) { flunk } }
    end
    holder.unlock
    assert_free
  end

  def test_a_killed_thread_releases
    holding = Queue.new
    thread = Thread.new { @locker.lock(@name, ttl: 600) { holding.push(true); sleep } }
    holding.pop
    thread.kill.join
    assert_free
  end

  def test_a_killed_thread_stops_waiting
    [@locker, manager].each do |locker|
      locker.lock(@name, ttl: 600) do
        thread = Thread.new { @locker.lock(@name, ttl: 600, wait: nil) { flunk } }
        eventually("it waits") { thread.status == "sleep" }
        thread.kill
        assert thread.join(PATIENCE), "it went on waiting"
      end
      assert_free
    end
  end

  # Timeouts of all lengths, within each other, in threads that compete.
  def test_a_storm_of_timeouts
    names = Array.new(3) { |i| "#{@name}:#{i}" }
    threads = Array.new(6) do |i|
      Thread.new do
        80.times { impatient(rand(0.0005..0.006), names[i % 3]) }
      end
    end
    threads.each(&:join)
    names.each { |name| assert_free(name) }
  end

  def impatient(time, name)
    Timeout.timeout(time) do
      Timeout.timeout(time * rand(0.8..1.2)) do
        @locker.lock(name, ttl: 600, wait: nil) { sleep rand(0.0..0.002) }
      end
    end
  rescue Timeout::Error
    nil
  end

  # Wherever a thread is stopped, even between the grant and the block, it stops, and nothing stays locked.
  def test_a_thread_stopped_at_any_moment_leaves_nothing_locked
    200.times { |i| stop_a_thread(i.even?, rand(0.0..0.004)) }
    assert_free
  end

  # Ruby 3.1 closes descriptors twice when it is interrupted in the middle of IO.pipe.
  def test_a_thread_stopped_at_any_moment_closes_nothing_of_others
    line = Redlock.const_get(:Line)
    200.times do |i|
      stop_a_thread(i.even?, rand(0.0..0.002)) { line.new }
      GC.start if (i % 20).zero?
      File.open(__FILE__, &:stat)
    end
  end

  # The same for exceptions that a signal handler raises.
  def test_signals_at_any_moment_close_nothing_of_others
    line = Redlock.const_get(:Line)
    old = trap("USR1") { raise Interrupt, "from a signal" }
    200.times do |i|
      may_begin = Queue.new
      sender = Thread.new do
        may_begin.pop
        sleep rand(0.0..0.002)
        Process.kill("USR1", Process.pid)
      end
      assert_raises(Interrupt) { may_begin.push(true); loop { line.new } }
      sender.join
      GC.start if (i % 20).zero?
      File.open(__FILE__, &:stat)
    end
  ensure
    trap("USR1", old || "DEFAULT")
  end

  # The second one comes while the first is handled.
  def test_a_thread_stopped_twice_leaves_nothing_locked
    200.times do
      thread = start_a_thread
      sleep rand(0.0..0.002)
      thread.raise(IOError, "from outside")
      sleep rand(0.0..0.0002)
      thread.kill
      assert stopped?(thread), "it went on"
    end
    assert_free
  end

  # The exceptions come one right after the other when the thread leaves the queue. There it has to wait for
  # other threads that do the same.
  def test_a_thread_stopped_many_times_while_it_leaves_the_line_holds_up_nobody
    held = manager.lock(@name, ttl: 600)
    @locker.lock("#{@name}:other", ttl: 600) { true }
    line = @locker.instance_variable_get(:@servers).events.instance_variable_get(:@line)
    20.times do
      thread = start_a_thread { @locker.lock(@name, ttl: 600, wait: nil) { flunk } }
      eventually("it waits") { thread.status == "sleep" }
      line.instance_variable_get(:@mutex).synchronize do
        8.times do
          thread.raise(IOError, "from outside")
          sleep 0.001
        end
      end
      assert stopped?(thread), "it went on"
      other = Thread.new { @locker.lock("#{@name}:other", ttl: 600) { true } }
      assert other.join(PATIENCE), "it waits for ever"
    end
    held.unlock
    assert_free
  end

  # The same at the critical moment: right before the release.
  def test_a_thread_stopped_while_it_releases
    thread = Thread.new do
      @locker.lock(@name, ttl: 600) do |lease|
        before_unlock(lease) { Thread.new(Thread.current, &:kill).join }
        break
      end
      flunk "it went on"
    end
    assert thread.join(PATIENCE)
    assert_free
  end

  def test_signals_while_it_releases
    error = assert_raises(Interrupt) do
      @locker.lock(@name, ttl: 600) do |lease|
        signals = %w[first second third]
        before_unlock(lease) { raise Interrupt, signals.shift unless signals.empty? }
        raise IOError, "from the block"
      end
    end
    assert_equal "first", error.message
    assert_free
  end

  def before_unlock(lease, &block)
    lease.define_singleton_method(:unlock) do
      block.call
      super()
    end
  end

  # Then the thread may also be switched outside of calls.
  def test_a_thread_stopped_beside_busy_ones_leaves_nothing_locked
    busy = Thread.new { loop { 100.times { nil } } }
    6.times { |i| stop_a_thread(i.even?, rand(0.0..0.2)) }
    assert_free
  ensure
    busy.kill
  end

  def stop_a_thread(by_kill, after, &work)
    thread = start_a_thread(&work)
    sleep after
    by_kill ? thread.kill : thread.raise(IOError, "from outside")
    assert stopped?(thread), "it went on"
  end

  # It repeats the block, or locks if there is no block.
  def start_a_thread(&work)
    work ||= -> { @locker.lock(@name, ttl: 600) { Thread.pass } }
    running = Queue.new
    thread = Thread.new do
      Thread.current.report_on_exception = false
      running.push(true)
      loop(&work)
    end
    running.pop
    thread
  end

  def stopped?(thread)
    thread.join(PATIENCE)
  rescue IOError
    true
  end

  # The exceptions of signal handlers ignore masks, and more than one may come. Ctrl-C must release as well.
  def test_signals_at_any_moment_leave_nothing_locked
    @seen = 0
    old = trap("USR1") { @seen += 1; raise Interrupt, "from a signal" }
    40.times do |i|
      count = 1 + i % 3
      @seen = 0
      may_begin = Queue.new
      sender = Thread.new { may_begin.pop; send_signals(count) }
      rescue_all(count) do
        may_begin.push(true)
        eventually("the signal ends this") { @locker.lock(@name, ttl: 600) { false } }
      end
      # It counts with the variable that the next round sets to 0.
      sender.join
    end
    assert_free
  ensure
    trap("USR1", old || "DEFAULT")
  end

  # Each may come while the one before is rescued, so there are as many rescues, one around the other. An
  # exception that gets out of here would end the whole test run, as Ctrl-C does.
  def rescue_all(count, left = count, &block)
    left.zero? ? block.call : rescue_all(count, left - 1, &block)
  rescue Interrupt
    Thread.pass until @seen == count
  end

  # Two signals that are sent at once may arrive as one.
  def send_signals(count)
    sleep rand(0.0..0.004)
    count.times do |i|
      Process.kill("USR1", Process.pid)
      Thread.pass until @seen > i
      sleep rand(0.0..0.0005)
    end
  end

  # Ruby locks no mutex there.
  def test_what_works_in_a_trap
    lease = @locker.lock(@name, ttl: 600)
    assert_equal([true, false, false], in_trap { [lease.held?, lease.lost?, @locker.closed?] })
    assert_operator(in_trap { lease.remaining }, :>, 0)
    calls = [-> { lease.unlock }, -> { lease.extend }, -> { lease.confirm }, -> { @locker.lock(@name, ttl: 600) },
             -> { @locker.close }, -> { @locker.locked?(@name) }, -> { @locker.stats }]
    calls.each { |call| assert_instance_of ThreadError, in_trap(&call) }
    assert lease.confirm
    assert lease.unlock
    refute_predicate @locker, :closed?
    assert_free
  end

  # What the block returns or raises when it handles a signal.
  def in_trap
    result = nil
    old = trap("USR1") do
      result = [yield]
    rescue StandardError => e
      result = [e]
    end
    Process.kill("USR1", Process.pid)
    eventually("it is handled") { result }
    result.first
  ensure
    trap("USR1", old || "DEFAULT")
  end

  def test_an_interrupt_that_is_masked_outside_stays_masked
    ended = false
    holding = Queue.new
    go_on = Queue.new
    thread = Thread.new do
      Thread.handle_interrupt(IOError => :never) do
        @locker.lock(@name, ttl: 600) { holding.push(true); go_on.pop; ended = true }
      end
    end
    thread.report_on_exception = false
    holding.pop
    thread.raise(IOError, "later")
    go_on.push(true)
    assert_raises(IOError) { thread.join }
    assert ended
    assert_free
  end
end
