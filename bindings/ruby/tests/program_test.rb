# frozen_string_literal: true

require_relative "support"

class LoadingTest < RedlockTest
  def test_there_are_no_warnings
    assert_equal ["fine\n", ""], ruby_with_manager("puts LOCKER.lock(NAME, ttl: 60) { :fine }")
  end

  def test_a_library_that_is_not_there
    _, words = ruby("", "REDLOCK_LIBRARY" => "/nowhere/libredlock.so")
    assert_match(/LoadError/, words)
    assert_match(%r{/nowhere/libredlock.so}, words)
  end

  # What a program sees. Everything else is private, so that it may change.
  def test_internals_are_private
    assert_equal %i[
      Cancelled Closed Error Forked Histogram Info Internal InvalidArgument Lease Level Lost Manager Nested NoServers
      Outcomes Semaphore Server Stats Taken TooShort TooSlow Unreachable
    ], Redlock.constants.sort
    assert_equal %i[
      confirm detach downgrade extend extend_by fencing_token held? inspect keep_alive lost? message on_lost remaining
      resource resources shared? token unlock
    ], public_methods_of(Redlock::Lease)
    assert_empty public_methods_of(Redlock::Level) - public_methods_of(Redlock::Lease)
    assert_equal %i[acquire inspect permits resource taken try_acquire], public_methods_of(Redlock::Semaphore)
    [Redlock::Lease, Redlock::Level, Redlock::Semaphore].each { |it| refute_respond_to it, :new }
  end

  def public_methods_of(type)
    type.public_instance_methods(false).sort
  end

  # REDLOCK_TEST_STRANGERS has libraries that do not match, and words of each error.
  def test_a_library_that_does_not_fit
    ENV.fetch("REDLOCK_TEST_STRANGERS").split(",").each do |stranger|
      library, expected = stranger.split("=")
      _, words = ruby("", "REDLOCK_LIBRARY" => library)
      assert_match(/LoadError/, words)
      assert_includes words, library
      assert_includes words, expected
    end
  end

  def test_other_ractors_are_refused
    skip "there are no Ractors before Ruby 3.0" unless defined?(Ractor)
    out, = ruby(<<~SCRIPT)
      ractor = Ractor.new do
        Redlock::Manager.new("127.0.0.1:1")
      rescue Redlock::Error => e
        e.message
      end
      puts ractor.respond_to?(:value) ? ractor.value : ractor.take
      begin
        Ractor.make_shareable(Redlock::Manager.new("127.0.0.1:1"))
      rescue Ractor::Error, TypeError
        puts "not shareable"
      end
    SCRIPT
    assert_equal "redlock works in the main Ractor only\nnot shareable\n", out
  end
end

class CollectorTest < RedlockTest
  def test_the_collector_only_frees
    names = Array.new(30) { |i| "#{@name}:#{i}" }
    forget(names)
    3.times { GC.start }
    names.each { |name| assert @locker.locked?(name), "the collector released #{name}" }
    ask_all("DEL", *names)
  end

  def forget(names)
    names.each { |name| manager.lock(name, ttl: 60) }
  end

  def test_a_collector_that_always_runs
    script = <<~SCRIPT
      GC.auto_compact = true if MODE == "auto" && GC.respond_to?(:auto_compact=)
      LOCKER.lock(NAME, ttl: 600, keep_alive: true) do |lease|
        GC.stress = MODE != "auto"
        lease.extend(ttl: 300)
        GC.stress = false
        lease.confirm(least: 1)
        abort "not locked" unless LOCKER.locked?(NAME)
        LOCKER.lock(NAME + ":" + "long" * 300, ttl: 600, wait: 0) { GC.compact if GC.respond_to?(:compact) }
        GC.stress = MODE != "auto"
      end
      Redlock::Manager.new("127.0.0.1:1").close
      GC.stress = false
      puts LOCKER.locked?(NAME)
    SCRIPT
    %w[auto stress].each do |mode|
      assert_equal ["false\n", ""], ruby_with_manager("MODE = #{mode.dump}\n#{script}"), mode
    end
    assert_free
  end
end
