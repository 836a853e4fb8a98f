# frozen_string_literal: true

# Locks that are held on a majority of independent Redis or Valkey servers, through the C library of the same name:
#
#   locker = Redlock::Manager.new("127.0.0.1:6379", "127.0.0.1:6380", "127.0.0.1:6381")
#   locker.lock("report", ttl: 10) { |lease| ... }
#
# A job that may take longer than its lock can keep the lock alive: the lock is extended until the block ends. If it
# cannot be kept alive, the job learns this in time:
#
#   locker.lock("report", ttl: 10, keep_alive: true) do |lease|
#     pages.each { |page| lease.lost? ? break : write(page) }
#   end
#
# All times are in seconds, and may be fractions. The library is the file that REDLOCK_LIBRARY names, the file
# beside this one, or the file that the system's loader finds. Ruby 2.7 or later is needed, and no gem, except that
# Fiddle comes with Ruby as a gem from 4.0 on, so a Gemfile must name it.
#
# Threads::   While a thread waits for a lock, or for servers, other threads run. Timeout, Thread#raise, Thread#kill
#             and the exceptions of signal handlers end a call on a lock at once, also if servers do not answer.
#             With the block form they never leave a lock behind: the block form waits for the release at its end,
#             as long as the timeouts allow. Manager#locked? and Manager#connect handle them only after they have
#             ended.
# Names::     A server that has been unreachable for 2 s may have got another address. Its name is looked up in a thread
#             that ends with that, while a call waits or a lock is kept alive. Neither calls nor Manager#close wait for
#             it. If a call waits and no lock is kept, the end of the program does: Ruby waits for its threads.
# Processes:: A manager that was made before a fork works in the parent and in its children, as under Puma or
#             Unicorn with a preloaded application. A lock belongs to the process that took it. In a child, calls on
#             it raise Redlock::Forked, and neither an exit nor the garbage collector releases it. Process.daemon is
#             a fork, too.
# Signals::   In a block of +trap+, Ruby locks no mutex. So calls there raise ThreadError, and change nothing. Only
#             Lease#held?, #lost? and #remaining and Manager#closed? work there. Begin a thread for anything else, or
#             raise an exception.
# Fibers::    With a Fiber scheduler (Ruby 3.1 or later), a call on a lock blocks only its own fiber.
# Ractors::   Only the main Ractor is supported. Manager.new raises Redlock::Error in any other, and a manager
#             cannot be sent there.
module Redlock; end

require_relative "native/errors"
require_relative "native/state"
require_relative "native/stats"
require_relative "native/structs"
require_relative "native/library"
require_relative "native/arguments"
require_relative "native/interrupts"
require_relative "native/line"
require_relative "native/events"
require_relative "native/servers"
require_relative "native/lease"
require_relative "native/reentrant"
require_relative "native/semaphore"
require_relative "native/manager"
