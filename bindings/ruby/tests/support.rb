# frozen_string_literal: true

# Needs REDLOCK_TEST_SERVERS=host:port,host:port,... (real servers, of which a minority may be down) and
# REDLOCK_LIBRARY, unless the loader finds the library by itself.

require "minitest/autorun"
require "open3"
require "rbconfig"
require "securerandom"
require "socket"
require "timeout"
require_relative "../lib/redlock"

class RedlockTest < Minitest::Test
  SERVERS = ENV.fetch("REDLOCK_TEST_SERVERS").split(",").freeze
  PATIENCE = 60 # seconds after which something that should have happened has not
  # With one server down, a call needs both of the others, on a machine that may be busy.
  PATIENT = { retry_delay: 0.004, connect_timeout: 20, reply_timeout: 20 }.freeze
  BINDING = File.expand_path("../lib/redlock.rb", __dir__)

  def setup
    # From Ruby 3.2 on, the first timeout starts a thread that stays.
    Timeout.timeout(PATIENCE) { nil }
    @others = Thread.list
    @locker = manager
    @name = "ruby:#{name}:#{SecureRandom.hex(8)}"
  end

  # A thread that goes on takes processor time from the tests that follow.
  def teardown
    eventually("its threads have ended") { (Thread.list - @others).empty? }
  end

  def manager(*servers, **options)
    servers = SERVERS if servers.empty?
    Redlock::Manager.new(*servers, **PATIENT.merge(options))
  end

  # The test has made sure that no caller locks this name any more. A late server is released while the manager of
  # the last holder is in use.
  def assert_free(name = @name, last_holder: @locker)
    eventually("#{name} is free") { gone?(name, last_holder) && keys(name).zero? }
  end

  # While a lock ends on one server after another and a third is down, the answer is unknown.
  def gone?(name = @name, asked = @locker)
    !asked.locked?(name)
  rescue Redlock::Unreachable
    false
  end

  # How many servers have the key.
  def keys(name)
    SERVERS.count { |server| ask(server, "EXISTS", name) == ":1" }
  end

  # The first line of a server's answer; nil if it is down. Whoever looks for a free port listens on its port for a
  # moment.
  def ask(server, *words)
    host, port = server.split(":")
    Socket.tcp(host, port.to_i) do |socket|
      socket.write("*#{words.size}\r\n", *words.map { |word| "$#{word.bytesize}\r\n#{word}\r\n" })
      socket.gets&.chomp
    end
  rescue Errno::ECONNREFUSED, Errno::ECONNRESET, Errno::EPIPE
    nil
  end

  def ask_all(*words)
    SERVERS.each { |server| ask(server, *words) }
  end

  # While servers come back, an unlock may have to be repeated.
  def unlocked?(lease)
    lease.unlock
  rescue Redlock::Unreachable
    false
  rescue Redlock::Lost
    true # a late release has done it
  end

  # The servers are up, and answer no call that changes something.
  def paused
    ask_all("CLIENT", "PAUSE", "600000", "WRITE")
    yield
  ensure
    ask_all("CLIENT", "UNPAUSE")
  end

  def eventually(what)
    deadline = now + PATIENCE
    until yield
      flunk "never came true: #{what}" if now > deadline
      sleep 0.002
    end
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  # Runs the block in a child, and returns what it returned.
  def in_child
    reader, writer = IO.pipe
    child = fork do
      answer = begin
        yield
      rescue Exception => e # rubocop:disable Lint/RescueException -- the parent is to see it
        e
      end
      writer.write(Marshal.dump(answer))
      writer.close
      exit!(0)
    end
    writer.close
    Marshal.load(reader.read)
  ensure
    reader.close
    Process.wait(child)
  end

  def schedulers?
    Fiber.respond_to?(:current_scheduler)
  end

  # The output and the error output of a separate program.
  def ruby(script, environment = {})
    Open3.capture3(environment, RbConfig.ruby, "-w", "-r", BINDING, "-e", script).first(2)
  end

  # As #ruby, with a manager in the constant LOCKER and the name in NAME.
  def ruby_with_manager(script)
    ruby("LOCKER = Redlock::Manager.new(*#{SERVERS}, retry_delay: 0.004)\nNAME = #{@name.dump}\n#{script}")
  end
end
