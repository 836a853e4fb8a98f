# frozen_string_literal: true

# A small Fiber scheduler over IO.select: fibers that sleep, that wait for an IO to be readable, and that wait
# for a Mutex or a Queue.
class Turns
  PATIENCE = 60

  def self.run(&block)
    thread = Thread.new do
      Fiber.set_scheduler(new)
      block.call
    end
    thread.join(PATIENCE) or raise "its fibers wait for ever"
  end

  def initialize
    @ready = Queue.new
    @blocked = {} # until when, by fiber; nil: until it is unblocked
    @reading = {} # the IO, by fiber
    @reader, @writer = IO.pipe
  end

  def fiber(&block)
    Fiber.new(blocking: false, &block).tap(&:resume)
  end

  def kernel_sleep(time = nil)
    block(:sleep, time)
    true
  end

  def block(_blocker, timeout = nil)
    @blocked[Fiber.current] = timeout && now + timeout
    Fiber.yield
  ensure
    @blocked.delete(Fiber.current)
  end

  # Any thread may call this.
  def unblock(_blocker, fiber)
    @ready.push(fiber)
    @writer.write_nonblock(".", exception: false)
  end

  def io_wait(io, _events, timeout = nil)
    @reading[Fiber.current] = io
    block(io, timeout)
  ensure
    @reading.delete(Fiber.current)
  end

  def close
    wait_and_resume until @blocked.empty?
  ensure
    [@reader, @writer].each(&:close)
  end

  def wait_and_resume
    next_end = @blocked.each_value.reject(&:nil?).min
    readable, = IO.select([@reader, *@reading.values], nil, nil, next_end && [next_end - now, 0].max)
    readable = [readable].flatten
    @reader.read_nonblock(4096, exception: false) if readable.include?(@reader)
    fibers = Array.new(@ready.size) { @ready.pop }
    fibers += @reading.select { |_, io| readable.include?(io) }.keys
    fibers += @blocked.select { |_, moment| moment && moment <= now }.keys
    fibers.uniq.each { |fiber| fiber.resume if @blocked.key?(fiber) }
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
