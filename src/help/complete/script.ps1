# Completions for PowerShell: spektacular completions powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName spektacular -ScriptBlock {
    param($word, $ast, $cursor)
    $before = @($ast.CommandElements | Where-Object { $_.Extent.EndOffset -lt $cursor } |
        Select-Object -Skip 1 | ForEach-Object { "$_" })
    # Without a result, PowerShell completes file names.
    spektacular __complete ".$word" @before 2>$null | Where-Object { $_[0] -ne ':' } | ForEach-Object {
        $found, $about = $_ -split "`t", 2
        if (-not $about) { $about = $found }
        [System.Management.Automation.CompletionResult]::new($found, $found, 'ParameterValue', $about)
    }
}
