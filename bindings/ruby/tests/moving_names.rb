# frozen_string_literal: true

# Servers with names get other addresses: see moving_names.rs. The arguments: what waits for a lock, "threads" or
# "fibers", and the task.

require_relative "../lib/redlock"
require_relative "scheduler"

HOW, TASK = ARGV
SERVERS = ENV.fetch("REDLOCK_TEST_SERVERS").split(",")

def say
  $stdout.puts(TASK)
  $stdout.flush
end

def keep(manager)
  manager.lock("r", ttl: 8, keep_alive: true) do
    say
    $stdin.read
  end
  manager.close
end

def wait(manager)
  waiter = Thread.new { failure_of(manager) }
  say
  $stdin.read
  manager.close
  end_now(what_is_wrong(waiter))
end

# How long a closed manager may take to end a call. The test's own patience is longer.
PATIENCE = 45

def what_is_wrong(waiter)
  unless waiter.join(PATIENCE)
    return Thread.list.map { |it| [it.inspect, *it.backtrace].join("\n  ") }.join("\n")
  end

  "it has ended with #{waiter.value.inspect}" unless waiter.value.instance_of?(Redlock::Closed)
end

# Otherwise Ruby waits for the thread that waits for the resolver, also before it tells of an exception.
def end_now(fault)
  $stderr.puts(fault) if fault
  $stderr.flush
  exit!(fault.nil?)
end

def failure_of(manager)
  failure = nil
  take = lambda do
    manager.lock("r", ttl: 8, wait: nil)
  rescue Redlock::Error => e
    failure = e
  end
  if HOW == "fibers"
    Thread.new do
      Fiber.set_scheduler(Turns.new)
      Fiber.schedule(&take)
    end.join
  else
    take.call
  end
  failure
end

manager = Redlock::Manager.new(*SERVERS, reply_timeout: 20) # one that writes to its disk beside others may be slow
TASK == "keep" ? keep(manager) : wait(manager)
