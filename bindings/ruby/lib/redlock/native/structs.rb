# frozen_string_literal: true

require "fiddle"
require "fiddle/import"

module Redlock
  module C
    # RedLockAcquireOptions, RedLockEvent, RedLockServerInfo and RedLockInfo.
    module Structs
      extend Fiddle::Importer
      Options = struct([
        "size_t size", "uintptr_t resource", "size_t resource_size", "uintptr_t resources",
        "size_t resource_count", "long long ttl_ms", "long long wait_ms", "int tries", "int mode",
        "int permits", "int keep_alive"
      ])
      Event = struct([
        "size_t size", "int kind", "int status", "uintptr_t lease", "uintptr_t user_data",
        "long long remaining_ms"
      ])
      Server = struct([
        "size_t size", "int connected", "int votes", "long long round_trip_us",
        "long long clock_offset_us", "char name[256]", "char words[512]", "char version[32]", "char role[16]", "char run_id[48]", "char keeps[32]",
        "char eviction[32]"
      ])
      Info = struct([
        "size_t size", "int locked", "int mode", "long long remaining_ms", "long long readers",
        "char words[1024]", "int permits", "int permits_taken"
      ])
      Count = struct(["size_t value"])

      # RedLockStats: numbers of eight bytes, one after the other.
      OUTCOMES = 8
      BUCKETS = 21
      STATS_WORDS = 1 + (6 * OUTCOMES) + 12 + (4 * (2 + BUCKETS)) + BUCKETS - 1
    end
  end
end
