-- A waza that is missing, too old, or dies repeatedly is reported clearly, and once.
local t = require('support')

local function fake(name, text)
  local path = t.write(name, '#!/bin/sh\n' .. text)
  vim.loop.fs_chmod(path, 493)
  return path
end

local function open(name, options)
  require('waza').setup(options)
  vim.cmd('edit ' .. t.write(name .. '/eval.yaml', t.greeter))
end

local function reported(part)
  t.wait('the message ' .. part, function()
    return t.said(part) > 0
  end)
  t.same(1, t.said(part), 'it is reported once')
end

open('a', { path = t.dir .. '/nowhere/waza' })
reported('nowhere/waza" does not exist or is not executable. Install waza, or set its path')
vim.cmd('edit ' .. t.write('a/other.eval.yaml', t.greeter))
t.same(1, t.said('does not exist'))

-- A waza without `lsp`.
open('b', { path = fake('old', 'echo "unknown command" >&2; exit 2\n') })
reported('ended at once, with code 2: it may be too old')

-- A waza with `lsp` that lacks methods.
local answer =
  '{"jsonrpc":"2.0","id":1,"result":{"serverInfo":{"name":"waza","version":"0.0.1"},"capabilities":{"methods":["eval.run"]}}}'
open('c', {
  path = fake(
    'older',
    ("printf 'Content-Length: %d\\r\\n\\r\\n%%s' '%s'\nexec cat >/dev/null\n"):format(#answer, answer)
  ),
})
reported('is too old (0.0.1): it lacks task.run')

-- A waza that dies whenever a document is opened.
local good = [[
exec 3<&0
{ dd bs=1 count=1 >/dev/null 2>&1; } <&3
]]
open('d', {
  path = fake('dying', good .. 'kill -9 $$\n'),
  restart = { delay = 1, max_delay = 5, attempts = 2 },
})
reported('the daemon died 3 times in a row; :WazaRestart restarts it')
local daemon = require('waza.daemon').get(t.dir .. '/d')
t.same('down', daemon.state)

-- Requests to it get an error instead of no reply.
local answered
daemon:request('ping', nil, function(err)
  answered = err
end)
t.wait('an answer', function()
  return answered
end)
t.has(answered.message, 'the daemon died 3 times in a row')

-- A working waza starts on request.
require('waza').setup({ path = vim.env.WAZA })
vim.cmd('WazaRestart')
t.wait('the daemon', function()
  return daemon.state == 'ready'
end)
