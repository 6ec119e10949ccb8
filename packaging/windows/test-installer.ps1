# Installs dist\kvdesk-*-setup.exe silently for this user, runs the self-test, removes it and sees that nothing is left.
$ErrorActionPreference = "Stop"
$setup = Get-ChildItem dist\kvdesk-*-setup.exe | Select-Object -First 1
$folder = Join-Path $env:TEMP "kvdesk-installed"
$run = Start-Process $setup -ArgumentList "/VERYSILENT", "/SUPPRESSMSGBOXES", "/NORESTART", "/TASKS=associate", "/DIR=$folder" -Wait -PassThru
if ($run.ExitCode -ne 0) { throw "The installer ended with $($run.ExitCode)" }
& "$folder\kvdesk.exe" selftest
if ($LASTEXITCODE -ne 0) { throw "The self-test failed" }
$command = (Get-ItemProperty "HKCU:\Software\Classes\kvdesk.gguf\shell\open\command")."(default)"
if ($command -notlike "*kvdesk.exe*") { throw "GGUF files are not opened by kvdesk" }
Start-Process "$folder\unins000.exe" -ArgumentList "/VERYSILENT" -Wait
Start-Sleep -Seconds 3  # the uninstaller goes on in a copy of itself
if (Test-Path "$folder\kvdesk.exe") { throw "The program is still there" }
if (Test-Path "HKCU:\Software\Classes\kvdesk.gguf") { throw "The file association is still there" }
Write-Output "The installer is good."
