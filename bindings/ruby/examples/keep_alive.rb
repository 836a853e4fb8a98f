# frozen_string_literal: true

# A job of unknown length, under a lock that is kept alive: the library extends the lock in the background. If the
# lock cannot be kept alive, the job learns this in time.
#
#   ruby keep_alive.rb [host:port ...]

require_relative "../lib/redlock"

TTL = 2 # short, so that others need not wait long if this process dies; the job takes longer
STEPS = 30

servers = ARGV.empty? ? %w[127.0.0.1:6379 127.0.0.1:6380 127.0.0.1:6381] : ARGV

begin
  Redlock::Manager.new(*servers).lock("example:nightly-report", ttl: TTL, keep_alive: true) do |lease|
    lease.on_lost { |left| warn "the lock cannot be kept; it is valid for #{left} s still" }
    STEPS.times do |step|
      # The remaining validity is enough for a step that has begun, but not for another step.
      abort "stopped before step #{step + 1}" if lease.lost?
      sleep 0.1 # instead of real work
    end
  end
  puts "#{STEPS} steps under a lock of #{TTL} s"
rescue Redlock::Error => e
  abort "stopped: #{e.message}"
end
