-- The results of a run, task by task.

local buffers = require('waza.buffers')
local damage = require('waza.damage')
local figures = require('waza.figures')
local notice = require('waza.notice')
local pages = require('waza.page')

local M = {}

local function interval(of)
  if type(of) ~= 'table' then
    return ''
  end
  return figures.interval(of)
end

-- rate returns a pass rate or, while trials wait for a person, the possible rates.
local function rate(counts)
  if type(counts.passRateBounds) == 'table' then
    return interval(counts.passRateBounds)
  end
  return type(counts.passRate) == 'number' and figures.percent(counts.passRate) or '–'
end

local function score(of)
  return type(of) == 'table' and type(of.mean) == 'number' and figures.score(of.mean) or '–'
end

local function row(task)
  local c = task.counts or { passed = 0, total = 0 }
  return {
    task.id,
    ('%d/%d'):format(c.passed, c.total),
    score(task.score),
    rate(c),
    type(c.passRateBounds) == 'table' and ('%d to review'):format(c.needsReview) or interval(c.passRateInterval),
  }
end

local heads = { 'Task', 'Trials', 'Score', 'Pass rate', '95 % interval' }

local function widths(rows)
  local list = {}
  for i, head in ipairs(heads) do
    local texts = { head }
    for _, r in ipairs(rows) do
      table.insert(texts, r[i])
    end
    list[i] = pages.widest(texts)
  end
  return list
end

local function cells(r, wide)
  local text = ''
  for i = 2, #heads do
    text = text .. '  ' .. pages.pad(r[i], wide[i])
  end
  return (text:gsub('%s+$', ''))
end

local function summary(page, result)
  local s = result.summary
  local title = ('%s · %s'):format(result.suite.name, result.runId)
  page:line(
    { title, 'WazaTitle' },
    '  ',
    { result.status, buffers.group(result.status == 'completed' and 'passed' or 'failed') }
  )
  if type(s) == 'table' then
    page:line(('%d/%d tasks passed, %d/%d trials'):format(s.passed, s.total, s.trials.passed, s.trials.total))
  end
  if damage.found(result.damage) then
    page:line({ ('The record is damaged. `waza runs show %s` describes the damage.'):format(result.runId), 'WazaError' })
  end
  if result.error and result.error ~= vim.NIL then
    page:text(result.error, 'WazaError', '')
  end
end

-- render creates the page for the result of run.result.
function M.render(result)
  local page = pages.new()
  summary(page, result)
  page:line('')
  local rows = vim.tbl_map(row, result.tasks)
  local wide = widths(rows)
  page:line({ '  ' .. pages.pad(heads[1], wide[1]) .. cells(heads, wide), 'WazaQuiet' })
  for i, task in ipairs(result.tasks) do
    local verdict = task.verdict ~= '' and task.verdict or 'skipped'
    page:line(
      { buffers.icon(verdict) .. ' ', buffers.group(verdict) },
      pages.pad(task.id, wide[1]) .. cells(rows[i], wide)
    )
    page:target({ task = task.id })
    for _, reason in ipairs(task.reasons or {}) do
      local grader = reason.grader and reason.grader .. ': ' or ''
      local times = reason.trials > 1 and (' (%d trials)'):format(reason.trials) or ''
      page:line('    ', { grader .. vim.split(reason.message, '\n')[1] .. times, 'WazaQuiet' })
      page:target({ task = task.id })
    end
  end
  return page
end

-- open shows the results of a run; <CR> on a task shows a transcript.
function M.open(daemon, run_id)
  daemon:request('run.result', { runId = run_id }, function(err, result)
    if err then
      return notice.error(('run %s could not be shown: %s'):format(run_id, notice.reason(err)))
    end
    local page = M.render(result)
    local function transcript()
      local target = page.targets[vim.api.nvim_win_get_cursor(0)[1]]
      if target then
        require('waza.transcript').open(daemon, run_id, function(id)
          return id == target.task
        end)
      end
    end
    pages.split(page, 'waza://results', 'waza-results', {
      q = { '<Cmd>close<CR>', 'Close' },
      ['<CR>'] = { transcript, 'Transcript of the task' },
    }, 'Results   <CR> transcript   q close')
    vim.api.nvim_exec_autocmds('User', { pattern = 'WazaResults', modeline = false })
  end)
end

return M
