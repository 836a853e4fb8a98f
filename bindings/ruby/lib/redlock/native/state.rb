# frozen_string_literal: true

module Redlock
  # The state of one server, from Manager#servers.
  #
  # name::       host:port, or the path of its socket
  # connected::  whether there is a connection
  # votes::      whether its grants count
  # words::      why it is not connected, or does not vote
  # round_trip:: how many seconds its last answer took; nil if there was none yet
  # clock_offset:: how many seconds its clock is ahead of this machine's clock; nil if that is not known
  #
  # What the server said about itself when it was last asked. Empty if it did not say it, or if the user may not
  # ask:
  #
  # version::  the program and its version
  # role::     "primary", or "replica" or "sentinel", which cannot vote
  # run_id::   changes with each start
  # keeps::    which of its data outlives its process: "log, synced always", ..., "no log"
  # eviction:: its maxmemory-policy
  Server = Struct.new(:name, :connected, :votes, :words, :round_trip, :clock_offset, :version, :role, :run_id,
                      :keeps, :eviction, keyword_init: true)

  # What the servers report about a resource, from Manager#info.
  #
  # locked::    whether any client holds it
  # remaining:: how many seconds it is still held, if it is neither extended nor unlocked; Float::INFINITY: forever
  # shared::    whether several can hold it at the same time
  # readers::   how many hold it
  # words::     which servers could not answer, and why
  # permits_taken:: for a semaphore: how many permits are taken; it is locked if all are taken
  Info = Struct.new(:locked, :remaining, :shared, :readers, :words, :permits_taken, keyword_init: true)
end
