# frozen_string_literal: true

module Redlock
  # Code that must run to its end, whatever exceptions come from outside.
  module Undisturbed # :nodoc:
    MASKED = { Object => :never }.freeze
    # This many signals, one after the other, do not stop the block.
    TRIES = 20

    # Runs the block, and runs it again if an exception interrupted it. Thread#kill, Thread#raise and Timeout wait
    # for its end. The exceptions of signal handlers do not wait; they are raised when the block has ended.
    def self.run
      interruptions = []
      Thread.handle_interrupt(MASKED) do
        yield
      rescue Exception => e # rubocop:disable Lint/RescueException
        interruptions.push(e)
        retry if interruptions.size < TRIES
      end
      raise interruptions.first unless interruptions.empty?
    end
  end
  private_constant :Undisturbed
end
