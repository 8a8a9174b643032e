-- A damaged record is reported in the list of runs and in its results.
local t = require('support')

t.setup()
t.edit(t.write('eval.yaml', t.greeter))
local run = t.run()
vim.cmd('WazaRuns')
t.is(not t.text((t.shows('waza-runs'))):find('damaged', 1, true), 'the record is intact')
t.press('q')

local path = ('%s/runs/%s/journal.jsonl'):format(vim.env.WAZA_STATE, run.id)
local file = assert(io.open(path, 'r+b'))
local middle = math.floor(file:seek('end') / 2)
file:seek('set', middle)
local byte = file:read(1)
file:seek('set', middle)
file:write(byte == 'x' and 'y' or 'x')
file:close()

vim.cmd('WazaRuns')
t.wait('the damaged record', function() -- the daemon still has the state of a run that has just ended
  vim.cmd('WazaRuns')
  return t.text((t.shows('waza-runs'))):find('completed, damaged record', 1, true)
end)
t.press('gg')
t.press('<CR>')
t.has(t.text((t.shows('waza-results'))), ('The record is damaged. `waza runs show %s` describes the damage.'):format(run.id))
