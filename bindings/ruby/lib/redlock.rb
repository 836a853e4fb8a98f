# frozen_string_literal: true

# The gem redlock, by other authors, has a file of this name. So our gem leaves this file out, and is loaded by
# `require "redlock/native"`.
require_relative "redlock/native"
