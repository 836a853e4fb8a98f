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

  KINDS = %i[acquisitions extensions confirmations releases adoptions inspections].freeze
  # The name in the text, by the name here.
  NUMBERS = {
    detached: "lock_detachments_total", attempts: "lock_attempts_total", waits: "lock_waits_total",
    renewed: "lock_renewals_total", not_renewed: "lock_renewal_failures_total", kept_lost: "lock_kept_lost_total",
    waiting: "locks_waiting", kept: "locks_kept", requests: "server_requests_total",
    connections: "server_connections_total", connections_lost: "server_connections_lost_total",
    connections_failed: "server_connections_failed_total"
  }.freeze

  # Each has another value, as far as that can be.
  def test_each_number_is_the_one_that_its_name_says
    held = @locker.lock(@name, ttl: 600, keep_alive: true)
    waiter = Thread.new { @locker.lock(@name, ttl: 600, wait: nil) { true } }
    make_numbers("#{@name}:b")
    eventually("it waits") { @locker.stats.waiting == 1 }
    stats, text = two_that_agree { [@locker.stats, numbers_of(@locker.stats_text)] }
    KINDS.each do |kind|
      stats[kind].to_h.each { |outcome, count| assert_equal [count, outcome], [text["lock_#{kind}_total #{outcome}"] || 0, outcome] }
    end
    NUMBERS.each { |here, there| assert_equal [stats[here], here], [text[there], here] }
    assert_equal [5, 4, 1, 2, 1, 3], [stats.acquisitions.ok, *stats.confirmations.to_a.values_at(0, 5), stats.inspections.ok, stats.detached, stats.kept + stats.kept_lost + stats.waiting]
    held.unlock
    assert waiter.value
  end

  def make_numbers(other)
    lease = @locker.lock(other, ttl: 600)
    2.times { @locker.info(other) }
    4.times { lease.confirm }
    assert_raises(Redlock::TooShort) { lease.confirm(least: 700) }
    @locker.adopt(lease.detach) { |taker| 3.times { taker.extend } }
    2.times { @locker.lock(other, ttl: 600) { true } }
    kept = @locker.lock(other, ttl: 1, keep_alive: true)
    eventually("it is renewed") { @locker.stats.renewed > 1 }
    ask_all("DEL", other)
    eventually("it is lost") { kept.lost? }
    assert_raises(Redlock::Lost) { kept.unlock }
  end

  # Nothing was counted between the two, because the next ones are the same.
  def two_that_agree
    before = after = nil
    eventually("they agree") do
      before = after
      after = yield
      before && before.first == after.first
    end
    before
  end

  # By the names, without the prefix, and with the outcome; those of all servers together.
  def numbers_of(text)
    lines = text.scan(/^redlock_(\w+)(?:\{(?:outcome="(\w+)"|server="[^"]*")\})? (\d+)$/)
    lines.each_with_object(Hash.new(0)) { |(name, outcome, count), all| all[[name, outcome].compact.join(" ")] += count.to_i }
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
