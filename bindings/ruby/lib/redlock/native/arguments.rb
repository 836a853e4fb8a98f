# frozen_string_literal: true

require "fiddle"

module Redlock
  module C
    class << self
      # A string for C, in memory that does not move. Refuses other objects: most have some text, which names the
      # object and not what the caller means. Refuses a string that C would cut short: "a\0b" must not lock "a".
      def string(text, what)
        is_text = text.is_a?(String) || text.is_a?(Symbol)
        raise TypeError, "#{what} must be a String, not #{text.class}" unless is_text

        bytes = text.to_s.b
        raise InvalidArgument.new("#{what} contains a NUL byte", -1) if bytes.include?("\0")

        copy = Fiddle::Pointer.malloc(bytes.bytesize + 1, Fiddle::RUBY_FREE)
        copy[0, bytes.bytesize + 1] = bytes << "\0"
        copy
      end

      # The name of a resource. Another object is refused: its text may differ from process to process, and then the
      # lock would keep nobody out.
      def name(resource)
        case resource
        when String, Symbol, Integer then resource.to_s
        else raise TypeError, "resource must be a String, a Symbol or an Integer, not #{resource.class}"
        end
      end

      # Limits the number to the range of a C int, and leaves it to the library to refuse it.
      def count(permits)
        Integer(permits).clamp(-2**31, 2**31 - 1)
      end

      # Milliseconds; a small value never becomes 0, because 0 has another meaning.
      def ms(value, what)
        seconds = seconds(value, what)
        ms = (seconds * 1000).clamp(-(2**62), 2**62).round
        ms.zero? && !seconds.zero? ? (seconds <=> 0) : ms
      end

      def seconds(value, what)
        # A Time is a moment, and not how long something takes.
        is_time = value.respond_to?(:to_f) && !value.nil? && !value.is_a?(String) && !value.is_a?(Time)
        raise TypeError, "#{what} must be a number of seconds, not #{value.inspect}" unless is_time

        seconds = value.to_f
        raise InvalidArgument.new("#{what} is not a number", -1) if seconds.nan?

        seconds
      end
    end
  end
end
