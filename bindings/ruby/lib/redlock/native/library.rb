# frozen_string_literal: true

require "fiddle"

module Redlock
  # The C functions.
  module C
    # The interface version that this file needs. Below 1.0 the interface may change with the second number.
    INTERFACE = "0.3"
    NAMES = %w[libredlock.so.0.3 libredlock.so libredlock.dylib].freeze

    # Pointers are passed as integers. If Fiddle takes the address of a pointer itself, it swallows an exception
    # that Timeout or Thread#raise sends at that moment.
    ADDRESS = Fiddle::TYPE_UINTPTR_T
    POINTER = Fiddle::TYPE_VOIDP
    MS = Fiddle::TYPE_LONG_LONG
    INT = Fiddle::TYPE_INT
    BOOL = -Fiddle::TYPE_CHAR

    # The mode in which several callers may hold a lock.
    SHARED = 1

    # A result of a call that was cancelled, a result of RedLock_NextEvent, and the kinds of events.
    CANCELLED = 5
    RUBY = 5 # REDLOCK_LANGUAGE_RUBY
    NO_EVENT = 6
    DONE = 0
    LOST = 1

    # These return a status. Other Ruby threads run during the call.
    CALLS = {
      "RedLock_AddServerUrl" => [ADDRESS, ADDRESS, INT],
      "RedLock_Connect" => [ADDRESS, MS],
      "RedLock_LookUp" => [ADDRESS],
      "RedLock_SetRetry" => [ADDRESS, INT, INT],
      "RedLock_SetTimeouts" => [ADDRESS, MS, MS],
      "RedLock_SetClockDriftFactor" => [ADDRESS, Fiddle::TYPE_DOUBLE],
      "RedLock_SetRestartGuard" => [ADDRESS, INT, MS, MS],
      "RedLock_SetFailoverGuard" => [ADDRESS, BOOL],
      "RedLock_SetFencing" => [ADDRESS, BOOL],
      "RedLock_SetTracing" => [ADDRESS, INT],
      "RedLock_SetWaking" => [ADDRESS, BOOL],
      "RedLock_SetLanguage" => [ADDRESS, INT],
      "RedLock_SetTlsCa" => [ADDRESS, ADDRESS],
      "RedLock_SetTlsCertificate" => [ADDRESS, ADDRESS, ADDRESS],
      "RedLock_SetTlsServerName" => [ADDRESS, ADDRESS],
      "RedLock_SetTlsInsecureSkipVerify" => [ADDRESS, BOOL],
      "RedLock_SetCredentials" => [ADDRESS, ADDRESS, ADDRESS],
      "RedLock_KeepLog" => [ADDRESS, INT],
      "RedLock_SetBackgroundThread" => [ADDRESS, BOOL],
      "RedLock_IsLocked" => [ADDRESS, ADDRESS, ADDRESS],
      "RedLock_Inspect" => [ADDRESS, ADDRESS, Fiddle::TYPE_SIZE_T, ADDRESS],
      "RedLock_NextEvent" => [ADDRESS, MS, ADDRESS]
    }.freeze

    # These neither wait nor ask servers. To let other threads run would take longer than the calls themselves.
    LOOKS = {
      "RedLock_Version" => [POINTER],
      "RedLock_New" => [POINTER],
      "RedLock_Free" => [Fiddle::TYPE_VOID, ADDRESS],
      "RedLock_ErrorMessage" => [POINTER, ADDRESS],
      "RedLock_IsLookUpDue" => [BOOL, ADDRESS],
      "RedLock_Descriptor" => [INT, ADDRESS],
      "RedLock_Servers" => [INT, ADDRESS, ADDRESS, ADDRESS],
      "RedLock_GetStats" => [INT, ADDRESS, ADDRESS],
      "RedLock_StatsText" => [Fiddle::TYPE_SIZE_T, ADDRESS, ADDRESS, Fiddle::TYPE_SIZE_T],
      "RedLock_SubmitAcquire" => [INT, ADDRESS, ADDRESS, ADDRESS, ADDRESS],
      "RedLock_SubmitAdopt" => [INT, ADDRESS, ADDRESS, ADDRESS, ADDRESS],
      "RedLock_Detach" => [INT, ADDRESS, ADDRESS, ADDRESS, Fiddle::TYPE_SIZE_T],
      "RedLock_SubmitDowngrade" => [INT, ADDRESS, ADDRESS, ADDRESS],
      "RedLock_SubmitExtend" => [INT, ADDRESS, ADDRESS, MS, ADDRESS],
      "RedLock_SubmitConfirm" => [INT, ADDRESS, ADDRESS, MS, ADDRESS],
      "RedLock_SubmitUnlock" => [INT, ADDRESS, ADDRESS, ADDRESS],
      "RedLock_SubmitUnlockAfter" => [INT, ADDRESS, ADDRESS, MS, ADDRESS],
      "RedLock_Cancel" => [INT, ADDRESS, ADDRESS],
      "RedLock_KeepAlive" => [INT, ADDRESS, ADDRESS, ADDRESS],
      "RedLockStatus_Name" => [POINTER, INT],
      "RedLock_TakeLogLine" => [INT, ADDRESS, ADDRESS, Fiddle::TYPE_SIZE_T],
      "RedLock_Retain" => [INT, ADDRESS],
      "RedLockLease_Levels" => [INT, ADDRESS],
      "RedLockLease_New" => [POINTER],
      "RedLockLease_Free" => [Fiddle::TYPE_VOID, ADDRESS],
      "RedLockLease_IsHeld" => [BOOL, ADDRESS],
      "RedLockLease_RemainingMs" => [MS, ADDRESS],
      "RedLockLease_ValidityMs" => [MS, ADDRESS],
      "RedLockLease_Resource" => [POINTER, ADDRESS],
      "RedLockLease_ResourceSize" => [Fiddle::TYPE_SIZE_T, ADDRESS],
      "RedLockLease_ResourceCount" => [Fiddle::TYPE_SIZE_T, ADDRESS],
      "RedLockLease_ResourceAt" => [POINTER, ADDRESS, Fiddle::TYPE_SIZE_T],
      "RedLockLease_Token" => [POINTER, ADDRESS],
      "RedLockLease_Mode" => [INT, ADDRESS],
      "RedLockLease_FencingToken" => [MS, ADDRESS],
      "RedLockLease_ErrorMessage" => [POINTER, ADDRESS]
    }.freeze

    # RedLock_NextEvent as a call that does not let other threads run. It does not wait. Beside a computing thread, a
    # thread that lets others run waits a tenth of a second for its next turn.
    LOOK_FOR_EVENT = :look_for_event

    class << self
      def load_functions
        library, name = open_library
        functions = {}
        LOOKS.each { |it, (result, *types)| functions[it] = bind(library, name, it, types, result, true) }
        CALLS.each { |it, types| functions[it] = bind(library, name, it, types, INT, false) }
        functions[LOOK_FOR_EVENT] = bind(library, name, "RedLock_NextEvent", CALLS["RedLock_NextEvent"], INT, true)
        functions.freeze
      end

      def call(function, *arguments)
        FUNCTIONS.fetch(function).call(*arguments)
      end

      # The message may be missing, because another thread's call can clear the message of a failed call.
      def check(status, words)
        return true if status.zero?

        words = words(call("RedLockStatus_Name", status)) if words.empty?
        raise ERRORS.fetch(status, Error).new(words, status)
      end

      def words(pointer)
        pointer.to_s.dup.force_encoding(Encoding::UTF_8).scrub
      end

      # The text in a field of a struct.
      def letters(room)
        room.take_while(&:nonzero?).pack("c*").force_encoding(Encoding::UTF_8).scrub
      end

      # A handle that the garbage collector frees. The C functions for that do no I/O, and in a forked child they
      # touch nothing that belongs to the parent.
      def handle(type)
        handle = call("#{type}_New")
        raise NoMemoryError, "#{type}_New" if handle.null?

        handle.free = FUNCTIONS.fetch("#{type}_Free").to_i
        handle
      end

      private

      def open_library
        named = ENV["REDLOCK_LIBRARY"]
        failures = (named ? [named] : names).map do |name|
          library = Fiddle.dlopen(name)
          check_version(library, name)
          return [library, name]
        rescue Fiddle::DLError => e
          e.message
        end
        raise LoadError, "redlock library not found: install it, or set REDLOCK_LIBRARY to its path: #{failures.join('; ')}"
      end

      # A gem contains the library, beside native.rb.
      def names
        NAMES.map { |name| File.join(File.dirname(__dir__), name) }.select { |file| File.exist?(file) } + NAMES
      end

      def check_version(library, name)
        version = bind(library, name, "RedLock_Version", [], POINTER, true).call.to_s
        return if version.start_with?("#{INTERFACE}.")

        raise LoadError, "#{name} is redlock #{version}, but this file needs #{INTERFACE}"
      end

      def bind(library, name, function, types, result, is_look)
        address = library[function]
      rescue Fiddle::DLError
        raise LoadError, "#{name} has no #{function}: it is older than this file, or not redlock"
      else
        function_at(address, types, result, is_look)
      end

      def function_at(address, types, result, is_look)
        Fiddle::Function.new(address, types, result, need_gvl: is_look)
      rescue ArgumentError
        Fiddle::Function.new(address, types, result) # Ruby 2.7 lets other threads run in every call
      end
    end

    FUNCTIONS = load_functions
  end
  private_constant :C
end
