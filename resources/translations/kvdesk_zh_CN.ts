<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="zh_CN">
<context>
    <name></name>
    <message>
        <source>%n changed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%n messages deleted.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>%n more pinned</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>(unverified: its program publishes no description of this format)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>+%n more</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>, audited {at}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>--copies imports once more what is here already.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>1 message deleted.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>1 page</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>1 thread</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>; decoding reads {speed} GB/s, {how}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A Jinja text in the place of the model&apos;s chat template</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A branch of “{title}” {what}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A copy was saved to {file}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A longer time</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A model is open already: type here and press Enter. Everything is computed on this computer.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A preset sets all samplers at once, and the system prompt where it has one</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A sequence breaker is a text of at most {n} bytes.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A shorter time</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A template is checked on this chat first</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A text cannot be used as it is.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A text of the logit bias has no characters.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>A text that comes with kvdesk</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>About kvdesk</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Actions</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>All</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>All chats that are not here yet are imported, or none.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>All files (*)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>All of it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>All of these chats are here already.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>All of these chats are imported, or none.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>All parameters of this chat are as in the settings</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>All series in {unit}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>All series without a unit</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Also the texts that are otherwise left out of logs, settings and journal. Of other chats too.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>An answer is being written; stop it first.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>And, where it is ticked</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Answer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Answer again</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Answer {i} of {n}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Answers to “{question}”</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Application</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Apply</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Architecture</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Archive</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Archive the chat, or take it out</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Archived (%n)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>As in a new chat</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>As llama.cpp names it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>As text</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>As the file says</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Attach all of {name} again</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Attach files</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Attach files…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Attach text, code, PDF or DOCX files (Ctrl+Shift+A); dropping and pasting them works too</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Attachments</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Audit</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Audit at {at}: {result}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Audit the cell map</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Back</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Back to the chat</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Back to the chat (Esc)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Back to the chats</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Back to the conversations</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Back to the conversations (Esc)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Back to the default</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Back to the default: {value}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Batches and threads</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Becomes a version of its own; the answer as it was stays.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Being written…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Branches</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Branches (Ctrl+Shift+B)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Branches of this chat</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Bring it back where it stood</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Cache</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Cancel (Esc)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Cells of its cache: {used} of {size} used, high-water mark {mark}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Cells of this message</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Change system prompt, sampling and template of this chat ({keys})</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Chat</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Chat template of its own</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Chat with GGUF models on a laptop, and see what the KV cache is doing.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Chat: {text}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Chats</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Chats of kvdesk, ChatGPT, LM Studio, llama.cpp ({endings})</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Choose a file…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Choose a grammar or a JSON schema: there can be only one.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Choose a text</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Choose its cells for an operation</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Clear the cache</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Close</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Close (Esc)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Close and lose what is not saved?</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Close the branches</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Collapse the folder, or go to its head</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Command palette</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Compact the cache…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Compare the answers side by side</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Compare these answers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Compares every cell with the engine&apos;s own state</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Complete</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Context full</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Context: show what it is filled with</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Continue the answer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Continue where it ended: only new tokens are computed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Conversations</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copied.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copies the lines that are shown</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy as Markdown</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy as plain text</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy the message</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy the selection</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Copy the versions</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Counting the tokens …</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Creative</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>DRY</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>DRY: no repeated sequences</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Data type of most of its weights</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Data types of K and V, and flash attention</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Decode speed of the last tokens</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Default</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Default {default}, from {low} to {high}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Delete</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Delete question and answer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Delete the chat</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Delete the file</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Delete this message</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Delete {file} ({size}) from the disk? The application that downloaded it loses it too.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Deleted: “{title}”</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Deleted: “{title}” and %n more</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Delete…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Details</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Dismiss this message</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Done</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Draft</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Draft and attachments are estimated until you pause</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Each answer becomes a branch; the question is prefilled only once</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Each square is a cell of the KV cache: one token, in the colour of its chat. Grey cells are free.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Edit the answer…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Edited by you</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Edit…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Else its answers are sampled as the settings say.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Error: {sentence}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Errors</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Every operation since the context was made, without the tokens.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Expected: a token reads {size} of weights, and this machine reads {speed} GB/s of them.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Export all chats…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Export the chat</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Export the chats in it…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Export the chat…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Export the preset</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Export {n} chats</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Export…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Favourite</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Filter</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Filter models</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Filter the log</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Find a shortcut</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Find an action</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>First cell</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>First token after</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Fits here</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Fold {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Folder {name}, {state}, chats: %n</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Follow the system</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Forget cells</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Fork the chat after it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Format</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Found in</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Free</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>From kvdesk&apos;s own JSON, or an export of ChatGPT, LM Studio or llama.cpp&apos;s web UI</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>GGUF models (*.gguf);;All files (*)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Go to the list</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Go to the pinned message: {text}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Grammar, JSON schema, logit bias</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Graphs</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>HTML, the branch that is shown (*.html)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Hello</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Here you choose what happens then: stop, or let the oldest messages go.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Here you open another model, a GGUF file. Ctrl+, opens the settings.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Hide the inspector</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Hide the inspector (Ctrl+I)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>History</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Import</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Import a preset</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Import chats</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Import chats…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Import once more what is here already, as copies</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Import one chat</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Import {n} chats</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Import…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>In the cell map</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>In the graphs</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>In the list of conversations</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>In the message box</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Info</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It always holds</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It answers questions about the cache by experiments. Ctrl+Shift+P finds everything else, this tour too; F1 shows all keys.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It could not be saved: {why}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>It needs {needed}, and {free} are free.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Its chats stay, in no folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Its place in the cache is known after the next answer in this chat.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>JSON (*.json)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>JSON, with everything (*.json)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Journal of the cache</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>KV cache</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>KV {used} of {all} MB</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Keep it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Keep kvdesk open</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Keep this one</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Keep this one: {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Keep what fits</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Keeps the first part of what is attached, as much as fits beside the text and an answer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Language</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Larger text</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Last cell</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Last used</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Least level</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Leave</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Leave the answer as it was (Esc)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Leave the tour (Esc)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Leave what is open, or stop the answer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Left out</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Length limit reached</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Licence</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Licences</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Line {line} of the grammar cannot be read: {what}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Line {line} of the logit bias is not a token id, or a text in quotes, and a number.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Line {line} of the logit bias is out of range: -100 to 100.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Log</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Log lines of llama.cpp and kvdesk appear here.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Logs of kvdesk and llama.cpp</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Look again</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Looking through the folders of other applications…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Map of the experiment&apos;s own cache</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Markdown (*.md)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Markdown, the branch that is shown (*.md)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Measured when it ran last.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Memory of K and V: used, of what is allocated</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Menu</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Message: {text}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Messages</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Min P</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Mirostat 1</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Mirostat 2</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Mirostat, adaptive P</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Model</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Models</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Models and settings</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Models on this computer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Models on this computer…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>More about presets</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Move</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Move down</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Move down (Alt+Down)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Move the chat to a folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Move the cursor</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Move to folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Move up</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Move up (Alt+Up)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Move “{title}” to a new folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>My preset</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Name of the folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Name of the new folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Name of the preset</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>New chat</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>New folder…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>New line</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Next</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Next search result</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No action has these letters.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No answer is being written in this chat.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No chat has the id or title {name}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No chat is open.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No chat was deleted in the last seconds.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No context</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No favourite</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No model is open.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No question of this chat has several answers. “Answer again” makes another one.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No setting has these words.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No system prompt</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>No system prompt. Say here how the model is to answer in this chat.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing found. Titles and texts are searched.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing is prefilled again for this: the cache has all of it that it has now.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing to import</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Nothing was imported: all of its chats are here already.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Numbers in all its weights</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Of all its files</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Off</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>One chat of this file has more than {n} MB; kvdesk reads no larger ones.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>One chat was imported.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>One zip file is written where you choose. Nothing is sent: you give it to whom you want.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Only the last answer of a chat can be continued.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Only this one: what follows stays. It can be undone</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open a file…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open a model</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open a model…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open the embedded model</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open the folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open the inspector (Ctrl+I) to operate on the cache by hand.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Open the inspector to see which are in the cache.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Order of the samplers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Own sampling for this chat</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Own template for this chat</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Own template of this chat (Jinja)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Own values</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Parameters</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Parameters of this chat</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Parameters: {changes}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Pasted text</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Pasted text {n}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Penalties for repetition</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Pin</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Pin or unpin the chat</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Pinned messages</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Pinned messages are listed over the chat. A pin does not keep a message in the context.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Pinned: a click goes there. A pin does not keep it in the context.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Precise</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Prefilled tokens</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Preset</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Presets (*.json)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Presets (*.json);;All files (*)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Previous search result</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Progress of the import</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Prompt of this chat, token by token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Put {name} into the message box as text</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Puts it into the message box; what you send becomes a new branch, this one stays</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Questions about the cache, answered by experiments</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Quit</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Read another time</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Reading</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Reading {name}…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Reading: {done:.1f} of {total:.1f} MB</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Rebuild context</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Rebuild the context</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Rebuilding…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Remove its cells</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Remove its cells and all after it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Remove the folder</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Remove {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Rename</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Rename preset</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Rename the chat</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Rename…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Repeat, presence and frequency penalties</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Report a problem</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Report a problem…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Reset the zoom</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Reset {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Reused tokens</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Room for the answer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Same answer every time</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Sampling</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Sampling is no part of the prompt: changing it costs nothing in the cache.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Sampling preset</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Save</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Save (Ctrl+Enter)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Save and continue</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Save as preset</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Save as preset…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Save elsewhere</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Save elsewhere…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Save report…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Save the code</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Save the log</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Save the report</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Save this code as a file</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Saved to {name}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Saves it as Markdown, HTML, or JSON with everything</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Saves the differences between the map and the engine as JSON</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Saves the lines that are shown</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Save…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Saving: {n} of {total} messages</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Scroll the messages</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Search (Ctrl+K)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Search results</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Search settings</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Search the conversations</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Select as the cursor moves</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Send</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Send this queued message earlier</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Send this queued message later</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Settings</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Settings of the context</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Shortcuts</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show more of the inspector, or the map and four numbers</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show or hide the branches</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show or hide the cache inspector</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show or hide the conversations</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show or hide the drawing times of the cell map</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show the laboratory, or the conversations</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show the page {page}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show the page {page} of the inspector</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show the text of {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show the whole map</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Show these answers side by side</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Six steps through the window</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Size</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Smaller text</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Speed here</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Stop reading {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Stop the answer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Stopped by you</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>System prompt</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>System prompt and sampling of the settings, template of the model</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>System prompt of its own</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>System prompt of this chat</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>System prompt, sampling and template of this chat, and what changing them costs</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Take out of the archive</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Temperature</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Template and prompt</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Template of the model (Jinja)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Text</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Text (*.txt)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Text in the size of the system</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Text of the answer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Text, code, PDF and DOCX files, as text</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Text, code, PDF, DOCX (*)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The JSON schema cannot be used: {names} are numbers from 0 to {n:,}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The JSON schema cannot be used: {problem}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The JSON schema is not JSON: {problem}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The JSON schema is not an object, such as {example}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The JSON schema is too large.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The JSON schema’s pattern {pattern} cannot be used.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The ZIP {file} is damaged.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The answer begins.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The answer has ended.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The answer so far does not follow the grammar, so it cannot be continued.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The answer was continued; in all {generated} tokens of it, and {computed} computed for prompts</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The answer was not finished.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The answer was stopped.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The application that downloaded it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The cell map</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The cells of its cache are shown here as they change</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The chat goes on from this answer (Enter); the others stay as branches</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The chat that is open, with all its texts</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The chat was saved to {file}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The chat “{title}” cannot be read: {field} is not as it should be.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The chat “{title}” has token ids that are none.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The chat “{title}” has two messages with the same id.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The chat “{title}” is damaged: its messages follow one another in a circle.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The chats are open in kvdesk&apos;s window: close it, or export and import there.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The chats could not be written to {file}: {why}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The embedded model is not installed.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The engine has stopped.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The engine has stopped. Restart kvdesk.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The export was ended because kvdesk was closed.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The file cannot be read ({why}).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The file could not be read: the process that reads it ended.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The grammar allows no token of this model here.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The grammar has a character that is no text.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The grammar has no rule “root”, with which answers begin.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The grammar has no rule “{name}”, which another names.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The grammar is too ambiguous: a text can be read in too many ways.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The grammar is too large.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The grammar’s rule “{name}” begins with itself, for ever.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The grammar’s rule “{name}” can begin in too many ways.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The grammar’s {text} is not one token of this model.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The laboratory</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The largest context for which there is free memory now, and the type of K and V</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The logit bias names token {token}, and this model has {n:,} tokens.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The model goes on where your text ends; what is before your change stays in the cache</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The model has ended this answer by itself.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The name in the file, or of the file</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The name of a preset has 1 to {n} characters.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The new answer becomes a branch beside the one that is there</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The preset cannot be saved ({why}).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The preset cannot be used: {where}: {problem}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The preset was saved to {file}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The process that reads the file cannot be started: {why}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The prompt of this chat</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The prompt of this chat appears here once a model is open.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The prompt of this chat has {n} tokens, {cached} of them in the cache.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The question with all versions of its answer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The report was saved to {name}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The settings are too large to be saved: delete a preset.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The template of the model appears here once one is open.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The text has characters that are no text.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>The text has more than {n:,} characters.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Theme: as the system has it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Theme: dark</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Theme: light</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>There are more than {n:,} biases.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>There are more than {n} sequence breakers.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>There are no chats yet.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>There are {n} presets already; delete one first.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>There is another preset called “{name}”.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>They may hold your name. Otherwise only the names of files are written.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Thinking…</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This ZIP has no file of chats, such as conversations.json.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This ZIP has too many files.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This ZIP is damaged.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This ZIP is locked with a password.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This ZIP is packed in a way that kvdesk does not read.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This chat has no answer to continue.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This chat has no cells in the cache.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This chat has no messages.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This chat has one branch only.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This chat has {n} characters. The prompt is shown, and a template checked, up to {most}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This chat is not swapped out.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This chat: forget its cells</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This chat: {operation}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This engine does not say what that costs.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This file has more than {chats} chats or {messages} messages.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This file has more than {n} MB of chats; kvdesk imports no more at once.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This file is damaged, or is not JSON.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This file is no export that kvdesk knows: it reads its own, ChatGPT&apos;s, LM Studio&apos;s and llama.cpp&apos;s.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This file is not JSON.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This file is not a preset of kvdesk.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This file is not a preset: it is not JSON.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This file is not readable: its JSON is nested too deeply.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This file is not text in UTF-8.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This file is too large for a preset.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This file needs more memory to be read than kvdesk gives it.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This file says that kvdesk wrote it, but not in which version of the format.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This file was written by a newer kvdesk (format {found}, this one knows {known}).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This key works in the cell map.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This key works in the graphs.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This key works in the list of conversations.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This key works in the message box.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This message is on another branch. Wait until the answer has ended.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This model belongs to kvdesk itself and stays.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This model is open: open another one first.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This preset was made by a newer version of kvdesk.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>This template cannot be used; the one before stays in force.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Thought for {min} min {s} s</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Thought for {s} s</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Thought, {n} words</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Threads used to decode</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Three more answers at once</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Time</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Timeline</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Tokens a second it writes: measured when it ran last, or expected (≈)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Tokens of context it was trained for</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Tokens of the answer</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Tokens of the context, {n} in all</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Tokens per second</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Top K</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Top P</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Top n-sigma</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Tour</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Trained for</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Type</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Types and layout of the cache</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Typical P</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Under each answer stands how many tokens came from the cache, how many were computed, and how fast. Point at it for more.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Undo</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Undo (Ctrl+Z in the list)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Undo the deletion</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Undo the deletion of a chat</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Undo the last operation</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Unpin</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Unpin this message</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Unpin: {text}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Versions</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>View</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Wait until all answers have ended</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Warnings</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What an answer cost</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What is attached to a message stays when it is edited</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What other applications downloaded, whether it fits, and how fast it should be</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What this costs in the cache</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>What was sent before, while the box is empty</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>When it was opened last</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>When the context is full</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Whole paths of files</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>With this template there is no prompt.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Without what stands in quotation marks, and without what errors say: it could be from a chat.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Work under way</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Write a message</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Writes these chats as Markdown, on another disk</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>XTC</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>XTC, typical P, top n-sigma, dynamic temperature</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>You</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Your conversations are listed here. Send a message to start one.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Your text becomes a version beside this one; the model can continue it</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Zip files (*.zip)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Zoom in</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>Zoom out</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>a number is missing, or too large</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>a token is written &lt;[id]&gt; or &lt;text&gt;</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>about {seconds} s</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>attached files</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>calls of tools</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>collapsed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>comes with kvdesk</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>empty chats</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>expanded</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>from the memory&apos;s bandwidth alone</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>hexadecimal digits are missing</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>hidden messages</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>in the cache</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>kvdesk chats</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>kvdesk chats.md</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>less than 0.1 s</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>llama.cpp cannot use the grammar.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>llama.cpp&apos;s name: {name}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>measured with a model that ran here</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>more than {n:,} repetitions</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>no</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>not in the cache</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>not known</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>nothing</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>open</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>opened here</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>other content</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>parentheses are nested too deeply</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>pasted text</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>pictures</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>read as {encoding}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>references to web pages</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>results of tools</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>seed {seed}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>seq_id {n}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>shown</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>something else than a rule’s parts</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>sound and video</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>special</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>special token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>system messages</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>system prompt</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>template</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the first {n} characters</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the first {n} of {all} pages</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the grammar ends in the middle of a text</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the most repetitions are fewer than the least</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>the name of a rule is missing</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>there is nothing to repeat</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>to be computed</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>token</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>versions and processor, settings without their texts, and what can be done to the cache of the open model</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{file} cannot be deleted: {why}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{file} cannot be read: {why}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{file} cannot be written: {why}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{file} has no chats.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{file} is too large or too deeply nested to be read.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{file} must end in one of {endings}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{first} to {last}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{kind} {id} “{text}” at position {position}, {where}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} could not be read.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} could not be read: the reader stopped. It may be damaged.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} could not be read: {reason}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} has no text: its pages are probably scanned pictures. Only text can be attached.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} is a picture. Text, code, PDF and DOCX files can be attached.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} is an archive, or a document of another kind. Attach text, PDF or DOCX files.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} is attached</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} is damaged and cannot be read.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} is empty.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} is in an old Office format. Save it as DOCX or PDF and attach that.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} is no text file. Text, code, PDF and DOCX files can be attached.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} is protected with a password, so it cannot be read.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} is too large to be attached.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} needs more memory than a file of its kind should, so it was left out.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} random</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name} took longer than {seconds} seconds to read, so it was left out.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{name}, first part</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{n} chats were imported.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{n} chats were saved to {file}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{n} files at once are too many: at most {most} can be attached.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{n} models, {fitting} of them fit into the {free} of memory that are free now</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{n} of them here already</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{n} of {all}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{n} of {most} threads</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{n} pages</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{n} threads</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{n} tok/s</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{n} tokens</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{n} tokens are prefilled again with the next answer.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{n} tokens are prefilled again with the next answer: {time}.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{n} tokens in the middle are not shown</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{n} tokens of context with K and V in {kind} take {needed}; {free} are free.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{n} tokens: {cached} in the cache, {new} to be computed.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{n} values of sampling</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{text}, a favourite</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>{what}: {done} of {total} tokens</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>“)” is missing</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>“::=” is missing after the name of a rule</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>“\{char}” means nothing</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>“{name}” is a built-in preset: choose another name.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>“{name}” was deleted; its values are still shown.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>“{name}” was imported.</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>“{title}” is {verdict} ({n} tokens computed again in {time}).</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>“{title}” {what}</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>“}” is missing</source>
        <translation type="unfinished"></translation>
    </message>
</context>
</TS>
