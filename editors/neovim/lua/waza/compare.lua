-- Differences between runs: improved and regressed tasks.

local figures = require('waza.figures')
local notice = require('waza.notice')
local pages = require('waza.page')

local M = {}

local classes = {
  regressed = { '▼', 'WazaFailed' },
  improved = { '▲', 'WazaPassed' },
  unchanged = { '=', 'WazaQuiet' },
  no_difference = { '~', 'WazaQuiet' },
  undecided = { '?', 'WazaReview' },
}

local function trials(counts)
  return ('%d/%d'):format(counts.passed, counts.total)
end

local function points(contrast)
  if type(contrast) ~= 'table' then
    return ''
  end
  local text = figures.points(contrast.difference) .. ' points'
  local i = contrast.interval
  if type(i) == 'table' then
    text = text .. ' ' .. figures.points_interval(i)
  end
  return text
end

local function heading(page, result)
  for i, run in ipairs(result.runs) do
    local who = run.model and run.model ~= '' and run.model or run.executor
    page:line(
      { string.char(64 + math.min(i, 26)) .. '  ', 'WazaTitle' },
      ('%s  %s  %d/%d tasks passed'):format(run.name, who, run.tasks.passed, run.tasks.total)
    )
  end
end

local function differences(page, comparison)
  for _, d in ipairs(comparison.differences) do
    page:line({ ('  %s: %s → %s'):format(d.what, d.reference, d.run), 'WazaQuiet' })
  end
  for _, note in ipairs(comparison.notes) do
    page:line({ '  ' .. note.text, 'WazaQuiet' })
  end
end

local function tasks(page, comparison)
  local wide = pages.widest(vim.tbl_map(function(t)
    return t.id
  end, comparison.tasks))
  for _, task in ipairs(comparison.tasks) do
    local class = classes[task.class] or { '·', 'WazaQuiet' }
    page:line(
      { class[1] .. ' ' .. pages.pad(task.id, wide), class[2] },
      ('  %s → %s  '):format(trials(task.reference), trials(task.run)),
      { points(task.passRate), 'WazaQuiet' }
    )
  end
  for what, list in pairs({ ['only before'] = comparison.onlyReference, ['only now'] = comparison.onlyRun }) do
    if #list > 0 then
      page:line({ ('%s: %s'):format(what, table.concat(list, ', ')), 'WazaQuiet' })
    end
  end
end

-- render creates the page for the result of run.compare.
function M.render(result)
  local page = pages.new()
  heading(page, result)
  for i, comparison in ipairs(result.comparisons) do
    page:heading(
      ('%s against A: %d regressed, %d improved, %d unchanged, %d without a difference, %d undecided, each by itself'):format(
        string.char(64 + math.min(i + 1, 26)),
        comparison.regressed,
        comparison.improved,
        comparison.unchanged,
        comparison.noDifference,
        comparison.undecided
      )
    )
    tasks(page, comparison)
    differences(page, comparison)
  end
  return page
end

-- open compares runs, the reference first.
function M.open(daemon, run_ids)
  daemon:request('run.compare', { runIds = run_ids }, function(err, result)
    if err then
      return notice.error(('the runs could not be compared: %s'):format(notice.reason(err)))
    end
    local keys = { q = { '<Cmd>close<CR>', 'Close' } }
    pages.split(M.render(result), 'waza://compare', 'waza-compare', keys, 'Comparison   q close')
    vim.api.nvim_exec_autocmds('User', { pattern = 'WazaCompare', modeline = false })
  end)
end

-- last compares the newest run of a suite with the previous one.
function M.last(suite)
  suite.daemon:request('run.list', { path = suite.path, limit = 2 }, function(err, result)
    if err then
      return notice.error(notice.reason(err))
    end
    if #result.runs < 2 then
      return notice.warn('this suite has fewer than two runs to compare')
    end
    M.open(suite.daemon, { result.runs[2].runId, result.runs[1].runId })
  end)
end

return M
