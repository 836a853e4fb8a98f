# frozen_string_literal: true

require "fiddle"

module Redlock
  # Takes locks on one set of servers. Threads may share it, and processes forked later may use it.
  class Manager
    # The index of each name is its number in C.
    GUARDS = %i[on strict off durable].freeze
    # Which events of locks a logger receives. The index of each is its number in C.
    TRACES = [nil, :events, :resources].freeze
    private_constant :GUARDS, :TRACES

    # Servers are host:port, or URLs such as redis://user:password@host:6379/0, rediss://host:6379,
    # unix:///run/redis.sock, or redis-sentinel://host,host2/master for a master that Sentinels watch. All programs
    # that must exclude each other must name the same servers.
    #
    # user::, password:: log-in for servers whose URL has none. A password may be anything that responds to +call+.
    #                    It is called when the manager is made, in a forked child, and a second after a server
    #                    failed, so the password may change. If it raises a StandardError in the first of these
    #                    calls, Manager.new does. Later, the old password stays, the logger is told, and it is
    #                    called again after a second. Any other exception goes on to the caller, and nothing stays
    #                    locked.
    # tls::              true, or a Hash: servers that are given as host:port are reached over TLS, like those of
    #                    rediss://. Its keys, all optional: +ca+, +certificate+ and +key+ name PEM files (without
    #                    +ca+ the system's roots are trusted); +server_name+ is the name that certificates must
    #                    have, if not the host; +insecure_skip_verify+ true accepts any certificate.
    # retry_delay::      mean pause between two attempts; each pause is random. While locks change hands, the pauses
    #                    are shorter.
    # connect_timeout::  timeout for connecting to a server
    # reply_timeout::    timeout for a server's reply; 0 is a twentieth of the ttl, 0.025 to 0.5
    # drift_factor::     how much faster a server's clock may run than this machine's
    # restart_guard::    how the manager guards against servers that lose their memory, for example in a restart
    #                    without their data. With :on such servers have no vote until the locks that they may have
    #                    forgotten have ended. With :strict, servers that seem to be new also have no vote at first.
    #                    With :off every server that can be reached has a vote. With :durable it does, too, because
    #                    the program vouches that no server ever forgets.
    # longest_ttl::      the longest ttl that any client uses on these servers; nil: the ttl that is noted on the
    #                    servers
    # guard_cap::        the longest time that a server stays without a vote; nil: 600
    # failover_guard::   false: one Sentinel that names a master is enough, and a master keeps its vote while no
    #                    Sentinel can be reached. Then an old master may vote beside its successor, and two clients
    #                    may hold one lock. Otherwise a master that Sentinels watch has a vote only while a majority of
    #                    all its Sentinels names it as the master, so an old master that was paused or cut off while
    #                    another one was elected never votes beside its successor. It has no effect on
    #                    servers that no Sentinel watches, nor if restart_guard is :off or :durable.
    # fencing::          true: locks come with a fencing token, see Lease#fencing_token. All clients that lock the
    #                    resource must use it. The servers count in the key redlock:fence, so do not lock a
    #                    resource with this name.
    # waking::           false: waiting calls ask now and then, and releases wake no waiting clients. Otherwise
    #                    waiting calls are woken when another process releases the lock. The wait queue is in the
    #                    key that is named as the resource with :w appended, so do not lock a resource with such a
    #                    name.
    # logger::           as for #logger=
    # trace::            :events: the logger also receives the events of locks, at the severity DEBUG, one line of
    #                    key=value pairs for each event. :resources: the same with resource names.
    def initialize(*servers, user: nil, password: nil, tls: nil, retry_delay: 0.2, connect_timeout: 1.5,
                   reply_timeout: 0, drift_factor: 0.01, restart_guard: :on, longest_ttl: nil, guard_cap: nil,
                   failover_guard: true, fencing: false, waking: true, logger: nil, trace: nil)
      refuse_ractors
      servers = servers.flatten
      raise NoServers.new("no server was given", -2) if servers.empty?

      @count = servers.size
      @servers = Servers.new(user, password)
      set("RedLock_SetLanguage", C::RUBY)
      set("RedLock_SetRetry", 3, C.ms(retry_delay, "retry_delay").clamp(-1, 2**31 - 1))
      timeouts = [C.ms(connect_timeout, "connect_timeout"), C.ms(reply_timeout, "reply_timeout")]
      set("RedLock_SetTimeouts", *timeouts)
      set("RedLock_SetClockDriftFactor", Float(drift_factor))
      @servers.drift = Float(drift_factor)
      guard(restart_guard, longest_ttl || 0, guard_cap || 0)
      set("RedLock_SetFailoverGuard", 0) unless failover_guard
      set("RedLock_SetFencing", 1) if fencing
      trace(trace) if trace
      set("RedLock_SetWaking", 0) unless waking
      use_tls(**tls.transform_keys(&:to_sym)) if tls && tls != true
      @servers.log_in(password) if user || password
      servers.each { |server| add(String(server), tls ? "rediss" : "redis") }
      self.logger = logger if logger || password.respond_to?(:call) # log lines tell when to ask for the password
    end

    # Takes the lock for +ttl+ seconds and runs the block, and releases the lock however the block ends. If the
    # block ended normally but the lock had expired before, Lost is raised. Without a block it returns the lease,
    # which the caller must unlock. An exception from outside (Timeout, Thread#raise) that comes before the caller
    # has the lease loses the lock until its ttl expires.
    #
    # +wait+ is how many seconds to wait at most for a lock that is not available: 0 is one attempt, nil means no
    # limit. After that time, the result of the last attempt is raised: Taken, Unreachable or TooSlow.
    #
    # +keep_alive+ keeps the lock alive, as by Lease#keep_alive.
    #
    # +shared+: other callers that want the lock shared can hold it at the same time, and no caller can hold it
    # exclusively. While a caller waits for the exclusive lock, later callers that want it shared do not get it. A
    # shared lock has no fencing token. Besides the resource, the servers use the keys with :r and :i appended to
    # its name, so do not lock resources with such names.
    #
    # +resource+ is a String, a Symbol or an Integer; anything else raises TypeError. It may be an array of them, as in
    # <tt>lock(%w[a b], ttl: 10)</tt>. Its names are locked at once, all or none,
    # by one lock. It is extended and lost as a whole, and excludes every caller that wants one of them. 1 to 128
    # different names in any order. The message tells by its number which one was in the way.
    #
    # +reentrant+ lets this thread (or fiber) take the lock again while it holds it, if that call asks for it, too.
    # Each call has its own Lease, and only the last unlock of them asks servers. An inner lock that needs more time
    # than is left extends the lock, with one attempt. If the lock is kept alive and its ttl is long enough, no
    # extension is needed. A lost lock raises Lost at every level. Without +reentrant+, a call in a block for the
    # lock of that block raises Nested at once, unless both are shared.
    def lock(resource, ttl:, wait: 5, keep_alive: false, reentrant: false, shared: false, &block)
      a_lease(resource, ttl, reentrant, shared).__send__(:take, wait, keep_alive, &block)
    end

    # As #lock with one attempt, but if the lock is held it returns nil, and runs no block.
    def try_lock(resource, ttl:, keep_alive: false, reentrant: false, shared: false, &block)
      lease = a_lease(resource, ttl, reentrant, shared)
      lease.__send__(:take, 0, keep_alive, &block)
    rescue Taken => e
      raise unless lease.__send__(:refused_by?, e) # the exception comes from the block
    end

    # A resource that several callers can hold at the same time, in all programs with the same servers: a Semaphore.
    # +permits+ is how many callers can hold it at the same time. It is from 1 to 256, and must be the same for all
    # users of the resource. If the numbers differ, the greatest applies. A caller that locks the resource uses one
    # permit. Each permit lasts for +ttl+ seconds unless it is extended or unlocked; with +keep_alive+ it is kept
    # alive until it is unlocked.
    #
    #   api = manager.semaphore("api", permits: 8, ttl: 10)
    #   api.acquire { |lease| ... }
    def semaphore(resource, permits:, ttl:, keep_alive: false)
      Semaphore.__send__(:new, self, @servers, resource, Integer(permits), ttl, keep_alive)
    end

    # Takes over a lock that was given away with Lease#detach, in this process or another. The servers are asked
    # whether the lock is there. Lost: the lock has ended. Unreachable: too few servers answered, and the caller may
    # try again. With a block, the lock is released when the block ends, and the value of the block is returned.
    # Without a block, the Lease is returned. Lease#extend without an argument makes the lock last as long as it
    # lasted when it was adopted.
    #
    # Adopt a ticket only once. A second adopter shares the lock, as threads that share a lease do, and the first to
    # unlock it releases it for both.
    def adopt(ticket, keep_alive: false, &block)
      Lease.__send__(:new, @servers, "", 0).__send__(:take_over, ticket, keep_alive, &block)
    end

    # Asks the servers whether any client holds the resource. The answer may be out of date when it arrives: to get
    # a lock, take it without asking first.
    def locked?(resource)
      answer = Fiddle::Pointer.malloc(1, Fiddle::RUBY_FREE)
      name = C.string(C.name(resource), "resource")
      @servers.renew_log_in
      set("RedLock_IsLocked", name.to_i, answer.to_i)
      answer[0] != 0
    end

    # Asks the servers whether any client holds the resource, and for how long it is still held: an Info. This finds
    # the lock of any client, and changes nothing. The answer may be out of date when it arrives: to get a lock,
    # take it without asking first. With +permits+, the number of permits of a semaphore: also says how many permits
    # are taken.
    def info(resource, permits: 0)
      found = C::Structs::Info.malloc(Fiddle::RUBY_FREE)
      found.size = C::Structs::Info.size
      found.permits = C.count(permits)
      name = C.string(C.name(resource), "resource")
      @servers.renew_log_in
      set("RedLock_Inspect", name.to_i, 0, found.to_i)
      info_of(found)
    end

    # Connects now instead of at the first lock; returns when a quorum of the servers is connected. Returns a
    # message about the servers that are not connected, and why: a name may be misspelled. The message is empty if
    # all are connected. If there is no quorum, Unreachable is raised.
    def connect(timeout: 0)
      @servers.renew_log_in
      set("RedLock_Connect", C.ms(timeout, "timeout"))
    end

    # What is known of each server, in the order in which the servers were given: an array of Server. No server is
    # asked, and the call does not wait.
    def servers
      @servers.portraits
    end

    # The counters since the manager was made: Stats. No server is asked, and the call does not wait.
    def stats
      @servers.stats
    end

    # The counters and the state of each server as text for Prometheus; content type "text/plain; version=0.0.4".
    def stats_text
      @servers.stats_text
    end

    # Sets the logger, which is called when servers are lost, refuse or come back; nil: no logger. It is a Logger,
    # or responds to +call+ with a severity and a line of text. The severities are those of Logger: WARN for a
    # server fault, INFO for a repaired fault. It is called on the thread whose call met the fault, at the end of
    # that call, or on a thread of its own while locks are only kept alive. It may use this manager. Timeout,
    # Thread#raise and Thread#kill wait for its end. The text contains neither a password nor a token.
    #
    # A StandardError that it raises does not change the result of the call. Ruby tells of it as of an exception that
    # has ended a thread: see Thread.report_on_exception. Any other exception, such as an Interrupt, goes on to the
    # caller; if the call was to take a lock, nothing stays locked.
    def logger=(logger)
      @servers.logger = logger
    end

    # Ends the calls on locks that are under way: they raise Closed at once, and take no lock. A new call raises
    # Closed, too. Held locks stay held, a lock that is kept alive is kept, and both can still be unlocked. An unlock
    # that is under way is finished, and so are #locked?, #info and #connect. The connections are closed when the
    # last lease is unlocked. A manager that nothing refers to any more is closed, too.
    def close
      @servers.close
    end

    def closed?
      @servers.closed?
    end

    def inspect # :nodoc:
      "#<#{self.class} of #{@count} servers#{', closed' if closed?}>"
    end

    private

    def a_lease(resource, ttl, reentrant, shared)
      both = "shared and reentrant exclude each other"
      raise InvalidArgument.new(both, -1) if reentrant && shared

      (reentrant ? Level : Lease).__send__(:new, @servers, resource, ttl, shared: shared)
    end

    # Fiddle, and error messages, do not work in other Ractors, so this raises an error at once.
    def refuse_ractors
      return if !defined?(Ractor) || Ractor.current == Ractor.main

      raise Error, "redlock works in the main Ractor only"
    end

    def info_of(found)
      ms = found.remaining_ms
      Info.new(
        locked: !found.locked.zero?, remaining: ms.negative? ? Float::INFINITY : ms / 1000.0,
        shared: found.mode == C::SHARED, readers: found.readers, words: C.letters(found.words),
        permits_taken: found.permits_taken
      )
    end

    def set(function, *arguments)
      @servers.call(function, *arguments)
    end

    def trace(what)
      number = TRACES.index(what)
      raise InvalidArgument.new("trace is #{what.inspect}: it must be one of #{TRACES.inspect}", -1) unless number

      set("RedLock_SetTracing", number)
    end

    def guard(mode, longest_ttl, cap)
      number = GUARDS.index(mode)
      unless number
        raise InvalidArgument.new("restart_guard is #{mode.inspect}: it must be one of #{GUARDS.inspect}", -1)
      end

      set("RedLock_SetRestartGuard", number, C.ms(longest_ttl, "longest_ttl"), C.ms(cap, "guard_cap"))
    end

    def add(server, scheme)
      url = C.string(server.include?("://") ? server : "#{scheme}://#{server}", "server")
      set("RedLock_AddServerUrl", url.to_i, 0)
    end

    def use_tls(ca: nil, certificate: nil, key: nil, server_name: nil, insecure_skip_verify: false)
      named = { "tls.ca" => ca, "tls.certificate" => certificate, "tls.key" => key }
      files = named.map { |name, file| file && C.string(File.path(file), name) }
      set("RedLock_SetTlsCa", files[0].to_i) if ca
      set("RedLock_SetTlsCertificate", files[1].to_i, files[2].to_i) if certificate || key
      if server_name
        name = C.string(server_name, "tls.server_name")
        set("RedLock_SetTlsServerName", name.to_i)
      end
      set("RedLock_SetTlsInsecureSkipVerify", 1) if insecure_skip_verify
    end
  end
end
