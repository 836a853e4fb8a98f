# frozen_string_literal: true

module Redlock
  # A call that did not succeed. The message is for a person: the answer of each server, and the count of the votes.
  # The status is the number that the C library returned, or nil if the library was not called.
  class Error < StandardError
    attr_reader :status

    def initialize(message = nil, status = nil)
      super(message)
      @status = status
    end
  end

  class Taken < Error; end           # somebody else holds the lock
  class Nested < Taken; end          # the block around this call holds the lock, and not both are reentrant
  class Unreachable < Error; end     # too few servers answered in time
  class TooSlow < Error; end         # the lock was granted, but no validity was left
  class Lost < Error; end            # the lock is not held, or no longer held
  class InvalidArgument < Error; end # the message names the fault
  class NoServers < Error; end       # no server was given
  class Cancelled < Error; end       # the call was cancelled
  class TooShort < Error; end        # the lock is held, but not for as long as #confirm requires
  class Forked < Error; end          # the lease belongs to the parent process
  class Internal < Error; end        # the message says what happened
  class Closed < Error; end          # the manager was closed

  ERRORS = {
    1 => Taken, 2 => Unreachable, 3 => TooSlow, 4 => Lost, 5 => Cancelled, 7 => TooShort,
    -1 => InvalidArgument, -2 => NoServers, -3 => Forked, -4 => Internal
  }.freeze
  private_constant :ERRORS
end
