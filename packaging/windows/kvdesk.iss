; Inno Setup: a per-user installer, no administrator needed. `iscc /DVersion=X.Y.Z packaging\windows\kvdesk.iss`.
; Chats and settings are in the person's folder for data of programs and stay when kvdesk is removed.
#ifndef Version
  #error Version is missing
#endif

[Setup]
AppId={{6C2B5F5E-6E0B-4A5C-9C53-6B7664657330}
AppName=kvdesk
AppVersion={#Version}
AppPublisher=The kvdesk developers
DefaultDirName={localappdata}\Programs\kvdesk
DefaultGroupName=kvdesk
DisableProgramGroupPage=yes
PrivilegesRequired=lowest
MinVersion=10.0.17763
ArchitecturesAllowed=x64compatible
ArchitecturesInstallIn64BitMode=x64compatible
ChangesAssociations=yes
LicenseFile=..\..\LICENSE
OutputDir=..\..\dist
OutputBaseFilename=kvdesk-{#Version}-setup
SetupIconFile=..\..\build\icons\kvdesk.ico
UninstallDisplayIcon={app}\kvdesk.exe
Compression=lzma2/max
SolidCompression=yes
WizardStyle=modern
#ifdef SignTool
SignTool={#SignTool}
SignedUninstaller=yes
#endif

[Languages]
Name: "en"; MessagesFile: "compiler:Default.isl"
Name: "de"; MessagesFile: "compiler:Languages\German.isl"

[Tasks]
Name: "desktopicon"; Description: "{cm:CreateDesktopIcon}"; Flags: unchecked
Name: "associate"; Description: "{cm:AssocFileExtension,kvdesk,.gguf}"

[Files]
Source: "..\..\build\dist\kvdesk\*"; DestDir: "{app}"; Flags: recursesubdirs ignoreversion

[InstallDelete]
Type: filesandordirs; Name: "{app}\_internal"

[Icons]
Name: "{group}\kvdesk"; Filename: "{app}\kvdesk.exe"
Name: "{userdesktop}\kvdesk"; Filename: "{app}\kvdesk.exe"; Tasks: desktopicon

[Registry]
Root: HKCU; Subkey: "Software\Classes\.gguf\OpenWithProgids"; ValueType: string; ValueName: "kvdesk.gguf"; ValueData: ""; Flags: uninsdeletevalue; Tasks: associate
Root: HKCU; Subkey: "Software\Classes\kvdesk.gguf"; ValueType: string; ValueData: "GGUF language model"; Flags: uninsdeletekey; Tasks: associate
Root: HKCU; Subkey: "Software\Classes\kvdesk.gguf\DefaultIcon"; ValueType: string; ValueData: "{app}\kvdesk.exe,0"; Tasks: associate
Root: HKCU; Subkey: "Software\Classes\kvdesk.gguf\shell\open\command"; ValueType: string; ValueData: """{app}\kvdesk.exe"" ""%1"""; Tasks: associate

[Run]
Filename: "{app}\kvdesk.exe"; Description: "{cm:LaunchProgram,kvdesk}"; Flags: nowait postinstall skipifsilent
