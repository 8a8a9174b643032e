-- The transcript of a trial: messages, tools, graders, and changed files.

local buffers = require('waza.buffers')
local figures = require('waza.figures')
local notice = require('waza.notice')
local pages = require('waza.page')

local M = {}

local function took(ms)
  if not ms then
    return ''
  end
  return ms < 1000 and ('%d ms'):format(ms) or ('%.1f s'):format(ms / 1000)
end

-- Arguments and results of tools are texts, or any JSON.
local function shown(value)
  if value == nil or value == vim.NIL then
    return nil
  end
  return type(value) == 'string' and value or vim.json.encode(value)
end

local entries = {}

function entries.message(page, entry)
  local user = entry.role == 'user'
  page:line({
    user and '▌ User' or '▌ ' .. (entry.role or 'Agent'):gsub('^%l', string.upper),
    user and 'WazaUser' or 'WazaAgent',
  })
  page:text(entry.text)
end

function entries.tool_call(page, entry)
  local tool = entry.tool or {}
  local state = tool.status and tool.status ~= 'completed' and ' ' .. tool.status or ''
  local time = tool.durationMs and ' ' .. took(tool.durationMs) or ''
  page:line(
    { '▶ ' .. (tool.title or tool.name or 'tool'), 'WazaTool' },
    { state, 'WazaFailed' },
    { (tool.selfReported and ' self-reported' or '') .. time, 'WazaQuiet' }
  )
  local arguments, result = shown(tool.arguments), shown(tool.result)
  if arguments then
    page:text(arguments, nil, '  ')
  end
  if result then
    page:text(result, 'WazaQuiet', '  → ')
  end
end

function entries.plan(page, entry)
  page:line({ '▌ Plan', 'WazaTool' })
  for _, step in ipairs(entry.plan or {}) do
    page:line('  ' .. (step.status == 'completed' and '✓ ' or '· ') .. step.text)
  end
end

function entries.permission(page, entry)
  local p = entry.permission or {}
  page:line({ '▌ Permission ', 'WazaTool' }, p.title or p.kind or '', p.allowed and ': given' or ': refused')
end

local function other(page, entry)
  page:line({ '▌ ' .. entry.type:gsub('_', ' '), 'WazaQuiet' })
  page:text(entry.text or (entry.tool and entry.tool.name), 'WazaQuiet')
end

local function graders(page, trial)
  if #trial.graders == 0 then
    return
  end
  page:heading('Graders')
  for _, g in ipairs(trial.graders) do
    local verdict = g.error and 'error' or g.needsReview and 'needs_review' or g.passed and 'passed' or 'failed'
    page:line(
      { buffers.icon(verdict) .. ' ' .. g.name, buffers.group(verdict) },
      { ('  %s  score %s'):format(g.type, figures.score(g.score)), 'WazaQuiet' }
    )
    local why = g.error or g.feedback
    if why and why ~= '' then
      page:text(why, nil, '    ')
    end
  end
end

local signs = { ['+'] = 'WazaAdded', ['-'] = 'WazaRemoved', ['@'] = 'WazaPlace' }

local function file(page, f)
  page:line({ ('%s %s'):format(f.state, f.path), 'WazaTool' }, { f.note and ' – ' .. f.note or '', 'WazaQuiet' })
  if f.diff then
    for _, line in ipairs(vim.split((f.diff:gsub('\n$', '')), '\n')) do
      page:line('  ', { line, signs[line:sub(1, 1)] })
    end
  elseif f.text then
    for _, line in ipairs(vim.split((f.text:gsub('\n$', '')), '\n')) do
      page:line('  ', { '+' .. line, 'WazaAdded' })
    end
  end
end

local function files(page, result)
  local same = 0
  local list = vim.tbl_filter(function(f)
    same = same + (f.state == 'same' and 1 or 0)
    return f.state ~= 'same'
  end, result.files)
  if #list == 0 and same == 0 then
    return
  end
  page:heading('Files')
  for _, f in ipairs(list) do
    file(page, f)
  end
  if same > 0 then
    page:line({ ('%d unchanged'):format(same), 'WazaQuiet' })
  end
  if result.incomplete then
    page:line({ 'The list of files is incomplete: ' .. result.incomplete, 'WazaQuiet' })
  end
end

-- render creates the page for the result of run.trial.
function M.render(result, name)
  local trial = result.trial
  local page = pages.new()
  local score = type(trial.score) == 'number' and '  score ' .. figures.score(trial.score) or ''
  page:line(
    { ('%s · trial %d  '):format(name or trial.taskId, trial.trialNum), 'WazaTitle' },
    { buffers.icon(trial.verdict) .. ' ' .. trial.verdict:gsub('_', ' '), buffers.group(trial.verdict) },
    { score .. '  ' .. took(trial.durationMs), 'WazaQuiet' }
  )
  if trial.error and trial.error ~= '' then
    page:text(trial.error, 'WazaError')
  end
  graders(page, trial)
  page:heading('Transcript')
  for _, entry in ipairs(trial.transcript) do
    (entries[entry.type] or other)(page, entry)
  end
  if #trial.transcript == 0 then
    page:line({ 'Nothing was recorded.', 'WazaQuiet' })
  end
  files(page, result)
  if result.cut then
    page:line('')
    page:line({ ('%d bytes of long texts are left out; waza runs export contains everything.'):format(result.cut), 'WazaQuiet' })
  end
  return page
end

local window -- window with a transcript

local function close()
  if window and vim.api.nvim_win_is_valid(window) then
    vim.api.nvim_win_close(window, true)
  end
  window = nil
end

-- A tour is a list of trials, {task, trial, name}, and the index of the shown one.
local function show(tour)
  local stop = tour.list[tour.at]
  tour.daemon:request(
    'run.trial',
    { runId = tour.run_id, taskId = stop.task, trial = stop.trial },
    function(err, result)
      if err then
        return notice.error(('the transcript could not be shown: %s'):format(notice.reason(err)))
      end
      local function go(by)
        return function()
          tour.at = (tour.at - 1 + by) % #tour.list + 1
          show(tour)
        end
      end
      close()
      local title = ('%s · trial %d (%d of %d)'):format(stop.task, stop.trial, tour.at, #tour.list)
      local buffer
      buffer, window = pages.float(M.render(result, stop.name), title, 'waza-transcript', {
        q = { close, 'Close' },
        ['<Esc>'] = { close, 'Close' },
        [']t'] = { go(1), 'Next trial' },
        ['[t'] = { go(-1), 'Previous trial' },
      })
      vim.b[buffer].waza_trial = { run = tour.run_id, task = stop.task, trial = stop.trial }
      vim.api.nvim_exec_autocmds('User', { pattern = 'WazaTranscript', modeline = false })
    end
  )
end

local function of_task(task)
  local list = {}
  for _, trial in ipairs(task.trials or {}) do
    table.insert(list, { task = task.id, trial = trial.trialNum, name = task.name, verdict = trial.verdict })
  end
  return list
end

-- Prefers the first trial that failed, then the first that did not pass; of one task if
-- it is named.
local function first(list, wanted)
  local best, rank = 1, 0
  for i, stop in ipairs(list) do
    if not wanted or wanted(stop) then
      local r = stop.verdict == 'failed' and 3 or stop.verdict ~= 'passed' and 2 or 1
      if r > rank then
        best, rank = i, r
      end
    end
  end
  return best, rank > 0
end

-- open shows the first failed trial of a task in a run, or trial number if given.
-- wanted(task_id) selects tasks; ]t and [t go through all trials.
function M.open(daemon, run_id, wanted, number)
  daemon:request('run.result', { runId = run_id }, function(err, result)
    if err then
      return notice.error(('run %s could not be read: %s'):format(run_id, notice.reason(err)))
    end
    local list = {}
    for _, task in ipairs(result.tasks) do
      vim.list_extend(list, of_task(task))
    end
    local at, found = first(list, function(stop)
      return (not wanted or wanted(stop.task)) and (not number or stop.trial == number)
    end)
    if not found then
      return notice.warn('no trial of this task has ended in run ' .. run_id)
    end
    show({ daemon = daemon, run_id = run_id, list = list, at = at })
  end)
end

return M
