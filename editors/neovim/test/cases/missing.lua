-- A waza that is missing, too old, or dies again and again is told of clearly, and once.
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

local function told(part)
  t.wait('the message ' .. part, function()
    return t.said(part) > 0
  end)
  t.same(1, t.said(part), 'it is said once')
end

open('a', { path = t.dir .. '/nowhere/waza' })
told('nowhere/waza" is not there, or not executable. Install waza, or say where it is')
vim.cmd('edit ' .. t.write('a/other.eval.yaml', t.greeter))
t.same(1, t.said('is not there'))

-- One that does not know `lsp`.
open('b', { path = fake('old', 'echo "unknown command" >&2; exit 2\n') })
told('ended at once, with code 2: it may be too old')

-- One that knows it, and lacks methods.
local answer =
  '{"jsonrpc":"2.0","id":1,"result":{"serverInfo":{"name":"waza","version":"0.0.1"},"capabilities":{"methods":["eval.run"]}}}'
open('c', {
  path = fake(
    'older',
    ("printf 'Content-Length: %d\\r\\n\\r\\n%%s' '%s'\nexec cat >/dev/null\n"):format(#answer, answer)
  ),
})
told('is too old (0.0.1): it lacks task.run')

-- One that dies when it is told of a document, time after time.
local good = [[
exec 3<&0
{ dd bs=1 count=1 >/dev/null 2>&1; } <&3
]]
open('d', {
  path = fake('dying', good .. 'kill -9 $$\n'),
  restart = { delay = 1, max_delay = 5, attempts = 2 },
})
told('the daemon died 3 times in a row; :WazaRestart starts it again')
local daemon = require('waza.daemon').get(t.dir .. '/d')
t.same('down', daemon.state)

-- What is asked of it is answered with the reason, not with silence.
local answered
daemon:request('ping', nil, function(err)
  answered = err
end)
t.wait('an answer', function()
  return answered
end)
t.has(answered.message, 'the daemon died 3 times in a row')

-- A good one is started on request.
require('waza').setup({ path = vim.env.WAZA })
vim.cmd('WazaRestart')
t.wait('the daemon', function()
  return daemon.state == 'ready'
end)
