-- Finds suites by file names alone.

local M = {}

-- normal makes a path absolute, without links, so that paths of the daemon and of
-- buffers can be compared.
function M.normal(path)
  local absolute = vim.fn.fnamemodify(path, ':p')
  return vim.loop.fs_realpath(absolute) or absolute
end

function M.dir(path)
  return vim.fn.fnamemodify(path, ':h')
end

-- is_workflow reports whether a file belongs to a CI system, by its directory.
local function is_workflow(path)
  for _, dir in ipairs({ '%.github', '%.gitea', '%.forgejo' }) do
    if ('/' .. path):match('/' .. dir .. '/workflows/') then
      return true
    end
  end
  return false
end

-- is_suite reports whether a file is a suite, by its name: eval.yaml, eval.WORD.yaml,
-- eval-WORD.yaml or WORD.eval.yaml, unless it is a workflow.
function M.is_suite(path)
  if is_workflow(path) then
    return false
  end
  local name = vim.fn.fnamemodify(path, ':t')
  local stem = name:match('^(.+)%.ya?ml$')
  if not stem then
    return false
  end
  return stem == 'eval' or stem:match('^eval[.-][^.]+$') ~= nil or stem:match('^[^.]+%.eval$') ~= nil
end

function M.is_yaml(path)
  return path:match('%.ya?ml$') ~= nil
end

local function up(dir, visit)
  while true do
    local found = visit(dir)
    if found then
      return found
    end
    local parent = M.dir(dir)
    if parent == dir then
      return nil
    end
    dir = parent
  end
end

-- suites_in lists the suite files of a directory; nil if it has none.
function M.suites_in(dir)
  local list = {}
  local handle = vim.loop.fs_scandir(dir)
  while handle do
    local name, kind = vim.loop.fs_scandir_next(handle)
    if not name then
      break
    end
    if kind ~= 'directory' and M.is_suite(dir .. '/' .. name) then
      table.insert(list, dir .. '/' .. name)
    end
  end
  table.sort(list)
  return #list > 0 and list or nil
end

-- candidates lists the suites that a file may belong to: itself, or those in the
-- nearest directory above with any. It stays in the repository.
function M.candidates(path)
  if M.is_suite(path) then
    return { path }
  end
  local stop = false
  return up(M.dir(path), function(dir)
    if stop then
      return {}
    end
    stop = vim.loop.fs_stat(dir .. '/.git') ~= nil
    return M.suites_in(dir)
  end) or {}
end

-- root returns the directory of a daemon: the repository of a suite, or the suite's own
-- directory.
function M.root(path)
  return up(M.dir(path), function(dir)
    return vim.loop.fs_stat(dir .. '/.git') and dir
  end) or M.dir(path)
end

return M
