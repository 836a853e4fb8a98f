# frozen_string_literal: true

require_relative "support"

class ForkTest < RedlockTest
  def test_a_child_locks_alone
    @locker.lock(@name, ttl: 600) { nil } # the parent is connected before it forks
    other = "#{@name}:other"
    assert_equal(:had_it, in_child { @locker.lock(other, ttl: 600) { :had_it } })
    assert_free(other)
    @locker.lock(@name, ttl: 600) do
      assert_equal Redlock::Taken, in_child { @locker.lock(@name, ttl: 600, wait: 0) }.class
    end
  end

  def test_children_exclude_each_other
    reader, writer = IO.pipe
    children = Array.new(4) do
      fork do
        3.times do
          @locker.lock(@name, ttl: 30, wait: 60) do
            writer.syswrite("(")
            sleep 0.002 # the others have their chance to come in between
            writer.syswrite(")")
          end
        end
        exit!(0)
      end
    end
    writer.close
    assert_equal "()" * 12, reader.read
    children.each { |child| assert Process.wait2(child).last.success? }
    assert_free
  ensure
    reader&.close
  end

  def test_a_child_cannot_touch_the_lock_of_its_parent
    lease = @locker.lock(@name, ttl: 600)
    assert_equal([false, 0.0], in_child { [lease.held?, lease.remaining] })
    %i[unlock extend confirm].each do |call|
      assert_equal Redlock::Forked, in_child { error_of(lease, call) }, call
    end
    assert lease.confirm
    lease.unlock
  end

  def error_of(lease, call)
    lease.__send__(call)
  rescue Redlock::Error => e
    e.class
  end

  # The child leaves the block of its parent: by an exception, by exit, or in the usual way. Its garbage
  # collection and its exit leave the lock alone as well.
  def test_a_child_that_leaves_the_block_of_its_parent_does_not_release
    ["raise 'out'", "exit", "exit!", "nil", "lease = nil; GC.start", "LOCKER.close"].each do |leave|
      out, = ruby_with_manager(<<~SCRIPT)
        LOCKER.lock(NAME, ttl: 600) do |lease|
          if fork
            Process.wait
            puts "still the parent's" if lease.confirm
          else
            at_exit { GC.start }
            #{leave}
          end
        end
      SCRIPT
      assert_equal "still the parent's\n", out, leave
    end
    assert_free
  end

  # Threads wait, and one of them waits for all, when the child is made. The child has none of these threads.
  def test_a_child_of_a_parent_whose_threads_wait
    held = manager.lock(@name, ttl: 600)
    waiters = Array.new(3) { Thread.new { @locker.lock(@name, ttl: 600, wait: nil) { :got_it } } }
    waiters.each { |waiter| eventually("it waits") { waiter.status == "sleep" } }
    mine = "#{@name}:child"
    assert_equal :had_it, (in_child do
      Array.new(3) { Thread.new { @locker.lock(mine, ttl: 600, wait: nil) { :had_it } } }.map(&:value).first
    end)
    held.unlock
    assert_equal [:got_it] * 3, waiters.map(&:value)
    assert_free
  end

  # The interrupted call goes on only in the parent, because the lock is the parent's.
  def test_a_signal_handler_that_forks_in_the_midst_of_a_call
    @locker.lock(@name, ttl: 600) { nil } # from now on it sleeps only where it waits for its call
    held = manager.lock(@name, ttl: 600)
    reader, writer = IO.pipe
    child = nil
    # It does not wait for the child: Ruby 3.1 may do so for ever in a handler that has interrupted a select.
    old = trap("USR1") { child = fork }
    parent = Process.pid
    main = Thread.current
    heard = nil
    helper = Thread.new do
      Thread.pass until main.status == "sleep"
      Process.kill("USR1", parent)
      heard = reader.gets
      held.unlock
    end
    outcome = begin
      @locker.lock(@name, ttl: 600, wait: nil) { :got_it }
    rescue Exception => e # rubocop:disable Lint/RescueException -- a child must not go on with the tests
      e.class
    end
    if Process.pid != parent
      writer.syswrite("#{outcome}\n")
      exit!(0)
    end
    helper.join
    assert_equal [:got_it, "Redlock::Forked\n"], [outcome, heard]
    Process.wait(child)
    assert_free
  ensure
    trap("USR1", old || "DEFAULT")
  end

  # The first call makes a pipe on its own thread. A child that is forked meanwhile does not have that thread.
  # Nothing was submitted before the fork, so the child makes its own call.
  def test_a_signal_handler_that_forks_while_a_pipe_is_made
    out, = ruby_with_manager(<<~SCRIPT)
      child = $forked = nil
      trap("USR1") { child, $forked = fork, true }
      IO.singleton_class.prepend(Module.new do
        def pipe(...)
          Process.kill("USR1", Process.pid) if $forked.nil?
          Thread.pass until $forked
          super
        end
      end)
      outcome = begin
        LOCKER.lock(NAME, ttl: 600) { :had_it }
      rescue Exception => e
        e.class
      end
      unless child
        puts outcome
        $stdout.flush
        exit!(0)
      end
      Process.wait(child)
      puts outcome
    SCRIPT
    assert_equal "had_it\n" * 2, out
    assert_free
  end

  # As in a server that forks its workers: the application is loaded before, and locks in all of them.
  def test_workers_of_a_parent_that_holds_locks
    lease = @locker.lock(@name, ttl: 600)
    forgotten = "#{@name}:forgotten"
    @locker.lock(forgotten, ttl: 600)
    workers = Array.new(4) do |i|
      fork do
        mine = "#{@name}:#{i}"
        5.times { @locker.lock(mine, ttl: 600) { GC.start } }
        at_exit { exit!(@locker.locked?(mine) ? 1 : 0) }
        exit
      end
    end
    5.times { @locker.lock("#{@name}:parent", ttl: 600) { nil } }
    workers.each { |worker| assert Process.wait2(worker).last.success? }
    assert lease.confirm
    assert @locker.locked?(forgotten), "a worker released it"
    lease.unlock
    ask_all("DEL", forgotten)
  end

  # Children that are made while threads lock, and end in all ways.
  def test_a_storm_of_forks
    going = true
    threads = Array.new(4) { |i| Thread.new { @locker.lock("#{@name}:#{i}", ttl: 600) { nil } while going } }
    children = Array.new(24) do |i|
      fork do
        @locker.lock("#{@name}:#{i % 4}", ttl: 600, wait: nil) { nil }
        exit!(0) if i.even?
        GC.start
        exit
      end
    end
    statuses = children.map { |child| Process.wait2(child).last }
    going = false
    threads.each(&:join)
    assert statuses.all?(&:success?), statuses.inspect
    4.times { |i| assert_free("#{@name}:#{i}") }
  ensure
    going = false
  end
end
