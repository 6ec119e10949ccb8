<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="de">
<context>
    <name></name>
    <message>
        <source>New chat</source>
        <translation>Neuer Chat</translation>
    </message>
    <message numerus="yes">
        <source>%n tokens</source>
        <translation>
            <numerusform>%n Token, eins</numerusform>
            <numerusform>%n Token, mehrere</numerusform>
        </translation>
    </message>
</context>
</TS>
