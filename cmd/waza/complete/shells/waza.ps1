# Completion of waza for PowerShell. If waza has no candidates, PowerShell completes files.
Register-ArgumentCompleter -Native -CommandName waza -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $words = @($commandAst.CommandElements | Select-Object -Skip 1 |
        Where-Object { $_.Extent.EndOffset -le $cursorPosition } |
        ForEach-Object { $_.Extent.Text.Trim('"', "'") })
    if ($wordToComplete -eq '') {
        # Before 7.3 PowerShell drops empty arguments of programs.
        $words += if ($PSVersionTable.PSVersion -ge [version]'7.3') { '' } else { '""' }
    }
    # For --flag=value, candidates include the flag.
    $flag = if ($wordToComplete -match '^-[^=]*=') { $Matches[0] } else { '' }
    waza complete -- @words 2>$null | ForEach-Object {
        [System.Management.Automation.CompletionResult]::new("$flag$_", $_, 'ParameterValue', $_)
    }
}
