# frozen_string_literal: true

require_relative "support"

class StatsTest < RedlockTest
  def test_what_happens_is_counted
    other = manager
    @locker.lock(@name, ttl: 30) do |lease|
      assert_raises(Redlock::Taken) { other.lock(@name, ttl: 30, wait: 0) }
      lease.extend
    end
    stats = @locker.stats
    assert_equal [1, 1, 1, 1, 0], [stats.acquisitions.ok, stats.extensions.ok, stats.releases.ok, stats.attempts, stats.waits]
    [stats.acquire_time, stats.hold_time].each do |histogram|
      assert_equal [1, 1], [histogram.total, histogram.buckets.sum]
      assert_operator histogram.seconds, :>, 0
      assert_equal histogram.buckets.size - 1, histogram.bounds.size
      assert_in_delta 0.000025, histogram.bounds.first, 1e-9
      assert_in_delta 60, histogram.bounds.last, 1e-9
    end
    assert_operator stats.requests, :>=, 6
    assert_operator stats.round_trip.total, :>=, 6
    assert_equal 1, other.stats.acquisitions.taken
    assert_includes @locker.stats_text.lines, %(redlock_lock_acquisitions_total{outcome="ok"} 1\n)
    @locker.close
    assert_raises(Redlock::Closed) { @locker.stats }
    assert_raises(Redlock::Closed) { @locker.stats_text }
  end

  def test_what_becomes_of_locks_is_told_where_that_is_wanted
    lines = []
    logger = ->(severity, line) { lines.push(line.gsub(/ \w+_ms=[\d.]+/, "")) if severity.zero? }
    manager(logger: logger).lock(@name, ttl: 30, &:extend)
    assert_empty lines
    manager(logger: logger, trace: :events).lock(@name, ttl: 30, &:extend)
    assert_equal ["event=acquired attempts=1", "event=extended", "event=released"], lines.slice!(0..-1)
    manager(logger: logger, trace: :resources).lock(@name, ttl: 30) { nil }
    named = "resource=#{@name.inspect}"
    assert_equal ["event=acquired #{named} attempts=1", "event=released #{named}"], lines
    assert_raises(Redlock::InvalidArgument) { manager(trace: :all) }
  end
end
