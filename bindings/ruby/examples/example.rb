# frozen_string_literal: true

# Three people want to write the same report, and each waits a second for it. The first writes at once,
# the second after the first, and the third gives up.
#
#   ruby example.rb [host:port ...]

require_relative "../lib/redlock"

$stdout.sync = true
servers = ARGV.empty? ? %w[127.0.0.1:6379 127.0.0.1:6380 127.0.0.1:6381] : ARGV
LOCKER = Redlock::Manager.new(*servers)

def write(name)
  LOCKER.lock("example:report", ttl: 10, wait: 1) do |lease|
    (1..3).each do |page|
      puts "#{name} holds the lock for #{lease.remaining} s and writes page #{page}"
      sleep 0.2 # instead of real work
      lease.extend
    end
  end
rescue Redlock::Taken
  puts "#{name} gives up waiting"
rescue Redlock::Error => e
  abort "#{name} stops: #{e.message}"
end

# Processes exclude each other as threads do; one manager, made before the fork, works in all of them.
children = %w[Ada Ben Cleo].map { |name| fork { write(name) } }
statuses = children.map { |child| Process.wait2(child).last }
exit statuses.all?(&:success?)
