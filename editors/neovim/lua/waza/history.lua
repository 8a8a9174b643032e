-- The list of past runs, and the actions on them.

local buffers = require('waza.buffers')
local damage = require('waza.damage')
local notice = require('waza.notice')
local pages = require('waza.page')

local M = {}

local name = 'waza://runs'
local most = 200 -- runs

local function verdict(run)
  if run.status == 'running' then
    return 'running'
  elseif run.status ~= 'completed' then
    return 'cancelled'
  end
  local c = run.tasks
  if c.errors + c.timeouts > 0 then
    return 'error'
  end
  return c.failed > 0 and 'failed' or (c.needsReview or 0) > 0 and 'needs_review' or 'passed'
end

-- when returns the start of a run in local time.
local function when(run)
  local year, month, day, hour, min, sec = tostring(run.startedAt):match('^(%d+)-(%d+)-(%d+)T(%d+):(%d+):(%d+)')
  if not year then
    return ''
  end
  local started = os.time({ year = year, month = month, day = day, hour = hour, min = min, sec = sec, isdst = false })
  local now = os.time()
  local utc = os.date('!*t', now)
  utc.isdst = false
  return os.date('%Y-%m-%d %H:%M', started + os.difftime(now, os.time(utc)))
end

local function row(run)
  local who = run.agent or run.model or run.executor
  return {
    run.suite.name,
    ('%d/%d'):format(run.tasks.passed, run.tasks.total),
    damage.found(run.damage) and run.status .. ', damaged record' or run.status,
    who ~= '' and who or run.executor,
    when(run),
    run.runId,
  }
end

-- render creates the page for the result of run.list; marked is the id of the run that
-- the next comparison starts from.
function M.render(runs, marked)
  local page = pages.new()
  if #runs == 0 then
    page:line({ 'No runs yet. :WazaRun starts one.', 'WazaQuiet' })
    return page
  end
  local rows = vim.tbl_map(row, runs)
  local wide = {}
  for column = 1, 6 do
    wide[column] = pages.widest(vim.tbl_map(function(r)
      return r[column]
    end, rows))
  end
  for i, run in ipairs(runs) do
    local v = verdict(run)
    local text = ''
    for column = 1, 5 do
      text = text .. pages.pad(rows[i][column], wide[column]) .. '  '
    end
    local mark = run.runId == marked and 'A ' or '  '
    page:line({ mark, 'WazaTitle' }, { buffers.icon(v) .. ' ', buffers.group(v) }, text, { rows[i][6], 'WazaQuiet' })
    page:target(run)
  end
  return page
end

local help = {
  { '<CR>', 'show the results' },
  { 't', 'show the transcript of the first failed trial' },
  { 'c', 'compare: on a first run, then on a second' },
  { 'r', 'resume a run that did not complete' },
  { 'x', 'cancel an active run' },
  { 'd', 'delete the run' },
  { 'R', 'refresh the list' },
  { 'q', 'close' },
}

local hint = 'Runs   <CR> results   c compare   r resume   x cancel   d delete   ? all keys'

local function show_help()
  local page = pages.new()
  for _, line in ipairs(help) do
    page:line({ pages.pad(line[1], 6), 'WazaTool' }, line[2])
  end
  pages.float(page, 'Runs', 'waza-help', {
    q = { '<Cmd>close<CR>', 'Close' },
    ['<Esc>'] = { '<Cmd>close<CR>', 'Close' },
    ['?'] = { '<Cmd>close<CR>', 'Close' },
  })
end

local function confirm(run)
  local question = ('Delete run %s of %s and everything it recorded?'):format(run.runId, run.suite.name)
  return vim.fn.confirm(question, '&Delete\n&Keep', 2) == 1
end

-- A list is the content of the window: a daemon, the suite if any, and the page.
local List = {}
List.__index = List

function List:ask(method, run, what)
  self.daemon:request(method, { runId = run.runId }, function(err)
    if err then
      notice.error(('run %s could not be %s: %s'):format(run.runId, what, notice.reason(err)))
    end
    self:load()
  end)
end

-- resume resumes a run of the list as a run of this Neovim.
function M.resume(daemon, run, after)
  daemon:request('run.resume', { runId = run.runId }, function(err)
    if err then
      return notice.error(('run %s could not be resumed: %s'):format(run.runId, notice.reason(err)))
    end
    require('waza.runs').adopt(daemon, run)
    if after then
      after()
    end
  end)
end

function List:resume(run)
  M.resume(self.daemon, run, function()
    self:load()
  end)
end

function List:compare(run)
  if not self.marked or self.marked == run.runId then
    self.marked = run.runId
    self:draw()
    return
  end
  local reference = self.marked
  self.marked = nil
  self:draw()
  require('waza.compare').open(self.daemon, { reference, run.runId })
end

-- on wraps a function of the run under the cursor as the action of a key.
function List:on(action)
  return function()
    local run = self.page.targets[vim.api.nvim_win_get_cursor(0)[1]]
    if run then
      action(run)
    end
  end
end

function List:keys()
  return {
    ['<CR>'] = { self:on(function(run)
      require('waza.results').open(self.daemon, run.runId)
    end), 'Results' },
    t = { self:on(function(run)
      require('waza.transcript').open(self.daemon, run.runId)
    end), 'Transcript' },
    c = { self:on(function(run)
      self:compare(run)
    end), 'Compare' },
    r = { self:on(function(run)
      self:resume(run)
    end), 'Resume' },
    x = { self:on(function(run)
      self:ask('run.cancel', run, 'cancelled')
    end), 'Cancel' },
    d = {
      self:on(function(run)
        if confirm(run) then
          self:ask('run.rm', run, 'deleted')
        end
      end),
      'Delete',
    },
    R = {
      function()
        self:load()
      end,
      'Refresh',
    },
    ['?'] = { show_help, 'Help' },
    q = { '<Cmd>close<CR>', 'Close' },
  }
end

function List:draw()
  self.page = M.render(self.runs, self.marked)
  if self.buffer and vim.api.nvim_buf_is_valid(self.buffer) then
    self.page:fill(self.buffer)
  else
    self.buffer = pages.split(self.page, name, 'waza-runs', self:keys(), hint)
  end
end

function List:load()
  self.daemon:request('run.list', { path = self.path, limit = most }, function(err, result)
    if err then
      return notice.error('the runs could not be listed: ' .. notice.reason(err))
    end
    local open = self.buffer and vim.api.nvim_buf_is_valid(self.buffer)
    if self.buffer and not open then
      return -- the window was closed
    end
    self.runs = result.runs
    self:draw()
    vim.api.nvim_exec_autocmds('User', { pattern = 'WazaRuns', modeline = false })
  end)
end

-- open lists the runs of the daemon; those of one suite if a path is given.
function M.open(daemon, path)
  local window = vim.fn.bufwinid('^' .. name .. '$')
  if window ~= -1 then
    vim.api.nvim_win_close(window, true)
  end
  setmetatable({ daemon = daemon, path = path }, List):load()
end

return M
