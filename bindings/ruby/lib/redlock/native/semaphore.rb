# frozen_string_literal: true

module Redlock
  # A resource that several callers can hold at the same time, as Manager#semaphore returns it. Threads and fibers
  # may share it, and each of them may hold several permits. A permit is a Lease.
  class Semaphore
    private_class_method :new

    # The name, as it was given, and the number of permits.
    attr_reader :resource, :permits

    def initialize(manager, servers, resource, permits, ttl, keep_alive) # :nodoc:
      raise InvalidArgument.new("permits is #{permits}: it must be 1 to 256", -1) if permits < 1

      @manager = manager
      @servers = servers
      @resource = resource
      @permits = permits
      @ttl = ttl
      @keep_alive = keep_alive
    end

    # Takes a permit and runs the block, and unlocks the permit however the block ends; without a block it returns
    # the Lease. +wait+ and the exceptions are as for Manager#lock.
    def acquire(wait: 5, &block)
      lease.__send__(:take, wait, @keep_alive, &block)
    end

    # As #acquire with one attempt, but if all permits are taken it returns nil, and runs no block.
    def try_acquire(&block)
      lease = self.lease
      lease.__send__(:take, 0, @keep_alive, &block)
    rescue Taken => e
      raise unless lease.__send__(:refused_by?, e) # the exception comes from the block
    end

    # Asks the servers how many permits are taken. The answer may be out of date when it arrives.
    def taken
      @manager.info(@resource, permits: @permits).permits_taken
    end

    def inspect # :nodoc:
      "#<#{self.class} #{@resource.inspect} of #{@permits} permits>"
    end

    protected

    def lease
      Lease.__send__(:new, @servers, @resource, @ttl, permits: C.count(@permits))
    end
  end
end
