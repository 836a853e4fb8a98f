# frozen_string_literal: true

require_relative "support"

# Log-in: users are made on the servers for these tests.
class LoginTest < RedlockTest
  def setup
    super
    @user = "user-#{SecureRandom.hex(6)}"
    let_in("first")
  end

  def teardown
    ask_all("ACL", "DELUSER", @user)
  end

  def let_in(password)
    ask_all("ACL", "SETUSER", @user, "reset", "on", ">#{password}", "~ruby:*", "+@all")
  end

  def test_a_user_and_a_password
    manager(user: @user, password: "first").lock(@name, ttl: 600) { assert @locker.locked?(@name) }
    error = assert_raises(Redlock::Unreachable) do
      manager(user: @user, password: "wrong-secret").lock(@name, ttl: 600, wait: 0) { flunk }
    end
    refute_match(/secret/, error.message)
    assert_raises(Redlock::Unreachable) { manager(user: @user, password: "wrong").connect }
    assert_raises(Redlock::InvalidArgument) { manager(user: @user, password: "a\0b") }
    assert_raises(Redlock::InvalidArgument) { manager(password: "") }
    assert_free
  end

  def test_a_password_that_changes_while_nobody_looks
    password = "first"
    asked = 0
    locker = manager(user: @user, password: -> { asked += 1; password })
    locker.lock(@name, ttl: 600) { nil }
    assert_equal 1, asked
    let_in(password = "second")
    ask_all("CLIENT", "KILL", "USER", @user)
    # It finds out that it is refused, and asks again.
    assert_equal :in, locker.lock(@name, ttl: 600, wait: PATIENCE) { :in }
    assert_operator asked, :>, 1
    assert_free
  end

  # No call is made meanwhile.
  def test_a_logger_is_told_of_a_lost_server_while_a_lock_is_only_kept
    lines = Queue.new
    locker = manager(user: @user, password: "first", logger: ->(severity, line) { lines.push([severity, line]) })
    lease = locker.lock(@name, ttl: 600, keep_alive: true)
    lines.clear
    ask_all("CLIENT", "KILL", "USER", @user)
    eventually("it is told") { !lines.empty? }
    severity, line = lines.pop
    assert_equal 2, severity
    assert_includes line, "connection lost"
    eventually("it is unlocked") { unlocked?(lease) }
    assert_free
  end

  def test_a_password_is_asked_for_once_a_second_at_most
    asked = 0
    start = now
    locker = manager(user: @user, password: -> { asked += 1; "wrong" })
    200.times { assert_raises(Redlock::Unreachable) { locker.lock(@name, ttl: 600, wait: 0) { flunk } } }
    assert_operator asked, :<=, 1 + (now - start)
  end

  def test_a_child_asks_for_itself
    parent = Process.pid
    locker = manager(user: @user, password: -> { Process.pid == parent ? "first" : "second" })
    locker.lock(@name, ttl: 600) { nil }
    let_in("second")
    child = in_child { locker.lock(@name, ttl: 600, wait: 0) { :in } }
    assert_equal :in, child
    assert_free
  end

  def test_who_cannot_say_the_password
    assert_raises(IOError) { manager(user: @user, password: -> { raise IOError, "no vault" }) }
    answers = ["first"]
    locker = manager(user: @user, password: -> { answers.pop or raise IOError, "no vault" })
    assert_equal :in, locker.lock(@name, ttl: 600) { :in }
    assert_equal :in, (in_child { locker.lock(@name, ttl: 600) { :in } }), "the old one is still good"
    assert_free
  end

  # As #test_a_password_that_changes_while_nobody_looks, but at first the new one is not to be had.
  def assert_asked_again(error)
    answers = ["second", -> { raise error, "no vault" }, "first"]
    locker = manager(user: @user, password: -> { (answer = answers.pop).is_a?(String) ? answer : answer.call })
    lines = []
    locker.logger = ->(severity, line) { lines.push([severity, line]) }
    let_in("second")
    eventually("it is let in") { gets_in?(locker) && answers.empty? }
    told = [2, "the password function failed, the old password stays: #{error}"]
    assert_equal error.ancestors.include?(StandardError), lines.include?(told)
    assert_free
  end

  def gets_in?(locker)
    locker.lock(@name, ttl: 600, wait: 0) { true }
  rescue Redlock::Unreachable, NotImplementedError
    false
  end

  def test_who_cannot_say_the_new_password_is_asked_again
    assert_asked_again(IOError)
    let_in("first")
    assert_asked_again(NotImplementedError)
  end

  def test_what_is_raised_for_a_password_leaves_nothing
    answers = ["first"]
    locker = manager(user: @user, password: -> { answers.pop or raise NotImplementedError, "no vault" })
    seen = in_child do
      locker.lock(@name, ttl: 600)
    rescue NotImplementedError => e
      e.message
    end
    assert_equal "no vault", seen
    assert_free
  end
end
