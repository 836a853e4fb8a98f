# frozen_string_literal: true

require "pathname"
require_relative "support"

# REDLOCK_TEST_TLS_SERVERS has rediss:// URLs of servers that require certificates from their clients.
# REDLOCK_TEST_TLS_CA, _CERTIFICATE and _KEY name the necessary files. Without them the library has no TLS.
class TlsTest < RedlockTest
  URLS = ENV.fetch("REDLOCK_TEST_TLS_SERVERS", "").split(",").freeze

  if URLS.empty?
    def test_a_library_without_tls_says_so
      [{ server_name: "localhost" }, { insecure_skip_verify: true }].each do |tls|
        error = assert_raises(Redlock::InvalidArgument) { manager(*SERVERS, tls: tls) }
        assert_match(/TLS/, error.message)
      end
    end
  else
    CA, CERTIFICATE, KEY = %w[CA CERTIFICATE KEY].map { |it| ENV.fetch("REDLOCK_TEST_TLS_#{it}") }
    ADDRESSES = URLS.map { |url| url.delete_prefix("rediss://") }.freeze
    ALL = { ca: CA, certificate: CERTIFICATE, key: KEY }.freeze

    def secure(tls, servers = URLS)
      manager(*servers, tls: tls, connect_timeout: 10)
    end

    def test_a_lock_over_tls
      others = secure({ "ca" => Pathname(CA), "certificate" => CERTIFICATE, "key" => KEY, "server_name" => "localhost" })
      [URLS, ADDRESSES].each do |servers|
        locker = secure(ALL, servers)
        locker.lock(@name, ttl: 600) do |lease|
          assert lease.extend
          assert lease.confirm
          assert_raises(Redlock::Taken) { others.lock(@name, ttl: 600, wait: 0) { flunk } }
          assert_equal Redlock::Taken, in_child { locker.lock("#{@name}", ttl: 600, wait: 0) }.class
        end
        refute others.locked?(@name)
      end
    end

    def test_threads_over_tls
      locker = secure(ALL)
      counter = 0
      threads = Array.new(16) { Thread.new { locker.lock(@name, ttl: 600, wait: nil) { counter += 1 } } }
      threads.each(&:join)
      assert_equal 16, counter
    end

    def test_who_is_not_trusted
      [
        true, {}, # the system knows nothing of this authority
        { ca: CA }, # they want to know who we are
        ALL.merge(server_name: "another.example")
      ].each do |tls|
        assert_raises(Redlock::Unreachable) { secure(tls).lock(@name, ttl: 600, wait: 0) { flunk } }
      end
      blind = secure({ certificate: CERTIFICATE, key: KEY, insecure_skip_verify: true })
      assert_equal :in, blind.lock(@name, ttl: 600) { :in }
    end

    def test_files_that_are_of_no_use
      [{ ca: "/nowhere/ca.pem" }, { ca: KEY }, { certificate: CERTIFICATE }, { key: KEY },
       { certificate: CERTIFICATE, key: CA }, { server_name: "" }].each do |tls|
        assert_raises(Redlock::InvalidArgument, tls.to_s) { secure(tls) }
      end
      assert_raises(ArgumentError) { secure({ cert: CERTIFICATE }) }
    end
  end
end
