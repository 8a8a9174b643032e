-- Functions for all cases.

local M = { dir = vim.loop.fs_realpath(vim.env.DIR) }

M.notices = {}
vim.notify = function(text, level) -- luacheck: ignore
  table.insert(M.notices, { text = text, level = level })
end

-- said returns whether the user got a message, and how often.
function M.said(part)
  local n = 0
  for _, notice in ipairs(M.notices) do
    n = n + (notice.text:find(part, 1, true) and 1 or 0)
  end
  return n
end

-- state describes the state of a case that fails.
function M.state()
  local texts = vim.tbl_map(function(n)
    return n.text
  end, M.notices)
  return 'notices:\n  '
    .. table.concat(texts, '\n  ')
    .. '\nbuffer: '
    .. vim.api.nvim_buf_get_name(0)
    .. '\n'
    .. M.text()
end

-- wait waits for a condition, and fails if it does not become true in time.
function M.wait(what, condition, seconds)
  if not vim.wait((seconds or 40) * 1000, condition, 10) then
    error('waited in vain for ' .. what, 2)
  end
end

function M.same(want, got, what)
  if not vim.deep_equal(want, got) then
    error(('%s:\nwant %s\ngot  %s'):format(what or 'not the same', vim.inspect(want), vim.inspect(got)), 2)
  end
end

function M.is(condition, what)
  if not condition then
    error(what, 2)
  end
end

function M.has(text, part)
  if not text:find(part, 1, true) then
    error(('there is no %q in:\n%s'):format(part, text), 2)
  end
end

-- write creates a file below the case's directory, and returns its path.
function M.write(name, text)
  local path = M.dir .. '/' .. name
  vim.fn.mkdir(vim.fn.fnamemodify(path, ':h'), 'p')
  local file = assert(io.open(path, 'w'))
  file:write(text)
  file:close()
  return path
end

function M.text(buffer)
  return table.concat(vim.api.nvim_buf_get_lines(buffer or 0, 0, -1, false), '\n')
end

-- setup configures the plugin for a case.
function M.setup(options)
  require('waza').setup(vim.tbl_extend('force', { path = vim.env.WAZA }, options or {}))
end

-- greeter is a suite with one task that passes and one that fails.
M.greeter = [[
name: greeter
config:
  executor: mock
  trials_per_task: 2
  mock:
    replies:
      - match: Ada
        output: Hello, Ada.
      - match: letter
        output: The letter is in letter.md.
        tool_calls: [{name: write, arguments: {path: letter.md}, result: done}]
        files:
          - {path: letter.md, content: "Dear Ada,\nall is well.\n"}
          - {path: notes.txt, content: "one\nthree\n"}
graders:
  - {name: polite, type: text, config: {contains: [Hello]}}
tasks:
  - id: hello
    prompt: Greet Ada.
  - id: letter
    name: Write a letter
    prompt: Write a letter.
    inputs:
      files: [{path: notes.txt, content: "one\ntwo\n"}]
]]

-- gated is a suite whose trials, except the first, wait for a file named gate.
M.gated = [[
name: gated
config:
  executor: command
  sandbox: off
  command:
    - sh
    - -c
    - |
      echo $$ > "$WAZA_SUITE_DIR/pid.$WAZA_TRIAL"
      if [ "$WAZA_TRIAL" != 1 ]; then
        while [ ! -e "$WAZA_SUITE_DIR/gate" ]; do sleep 0.05; done
      fi
      echo Hello
  trials_per_task: 3
tasks:
  - id: wait
    prompt: Wait.
    graders: [{name: polite, type: text, config: {contains: [Hello]}}]
]]

-- edit opens a file of a suite, and waits until its daemon serves it.
function M.edit(path)
  vim.cmd('edit ' .. vim.fn.fnameescape(path))
  local buffer = vim.api.nvim_get_current_buf()
  M.wait('the daemon to serve ' .. path, function()
    local suite = require('waza.suites').attached_to(buffer)
    return suite and suite.daemon.state == 'ready' and #suite.tasks > 0
  end)
  return buffer, require('waza.suites').attached_to(buffer)
end

-- marks returns the virtual texts of results in a buffer, by line.
function M.marks(buffer)
  local found = {}
  local namespace = vim.api.nvim_get_namespaces().waza
  for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(buffer, namespace, 0, -1, { details = true })) do
    found[mark[2] + 1] = vim.trim(mark[4].virt_text[1][1])
  end
  return found
end

-- run starts a run and waits for its end.
function M.run(command)
  local runs = require('waza.runs')
  local before = runs.latest()
  vim.cmd(command or 'WazaRun')
  M.wait('the run to start', function()
    return runs.latest() ~= before
  end)
  local run = runs.latest()
  M.wait('the run to end', function()
    return run.status ~= 'running'
  end)
  return run
end

-- start_gated starts a run of a gated suite, and waits until its first trial has ended and
-- the second has started.
function M.start_gated(command)
  local runs = require('waza.runs')
  vim.cmd(command or 'WazaRun')
  M.wait('the second trial', function()
    local run = runs.latest()
    local task = run and run.tasks.wait
    return task and task.trials[1] == 'passed' and task.trials[2] == 'running'
  end)
  return runs.latest()
end

-- alive reports whether a process exists.
function M.alive(pid)
  return vim.loop.kill(pid, 0) == 0
end

-- pid_of returns the process of a trial of a gated suite, once it has started.
function M.pid_of(trial)
  local file = io.open(M.dir .. '/pid.' .. trial)
  local pid = file and file:read('*n')
  if file then
    file:close()
  end
  return pid
end

-- press types keys like a user.
function M.press(keys)
  vim.api.nvim_feedkeys(vim.api.nvim_replace_termcodes(keys, true, false, true), 'xt', false)
end

-- shows waits until a window shows a buffer of a filetype, and makes it the current one.
function M.shows(filetype)
  local found
  M.wait('a window with ' .. filetype, function()
    for _, window in ipairs(vim.api.nvim_list_wins()) do
      if vim.bo[vim.api.nvim_win_get_buf(window)].filetype == filetype then
        found = window
        return true
      end
    end
  end)
  vim.api.nvim_set_current_win(found)
  return vim.api.nvim_win_get_buf(found), found
end

return M
