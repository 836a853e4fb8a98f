# frozen_string_literal: true

module Redlock
  # The counters of a manager since it was made, from Manager#stats. Counts only grow; +waiting+ and +kept+ are
  # current numbers.
  #
  # acquisitions, extensions, confirmations, releases, adoptions, inspections:: Outcomes of the calls of that kind
  # detached::    locks that were given away
  # attempts::    how often the servers were asked for a lock; all at once counts as one
  # waits::       calls that had to wait for a lock, even if only for a moment
  # renewed, not_renewed:: extensions of locks that are kept alive, and those that failed and were tried again
  # kept_lost::   locks that could not be kept alive
  # requests::    requests that were sent, to all servers together
  # connections, connections_lost, connections_failed:: those that could be used, that were lost, and that failed
  # acquire_time, wait_time, hold_time, round_trip:: each a Histogram
  Stats = Struct.new(:acquisitions, :extensions, :confirmations, :releases, :adoptions, :inspections, :detached,
                     :attempts, :waits, :renewed, :not_renewed, :kept_lost, :requests, :connections,
                     :connections_lost, :connections_failed, :waiting, :kept, :acquire_time, :wait_time, :hold_time,
                     :round_trip, keyword_init: true)

  # The number of calls of one kind, by outcome.
  Outcomes = Struct.new(:ok, :taken, :unreachable, :too_slow, :lost, :too_short, :cancelled, :failed)

  # A histogram of durations: their number, and their sum in seconds. +buckets+ has the number of durations in each
  # bucket: at most the seconds at the same index in +bounds+, and more than the bound before it. The last bucket
  # has no bound.
  Histogram = Struct.new(:total, :seconds, :buckets, :bounds)
end
