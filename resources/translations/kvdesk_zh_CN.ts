<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="zh_CN">
<context>
    <name></name>
    <message>
        <source> (95 %: {low} to {high})</source>
        <translation>（95 %：{low} 到 {high}）</translation>
    </message>
    <message>
        <source> (estimated from the bytes of a cell)</source>
        <translation>（根据单元的字节数估算）</translation>
    </message>
    <message>
        <source> (rebuilt at {rebuilt_at})</source>
        <translation>（于 {rebuilt_at} 重建）</translation>
    </message>
    <message>
        <source> (stopped after request {n} in {stopped} of {rounds} rounds)</source>
        <translation>（在 {rounds} 轮中的 {stopped} 轮，于第 {n} 个请求后停止）</translation>
    </message>
    <message>
        <source> ({decode_tok_s} tok/s)</source>
        <translation>（{decode_tok_s} tok/s）</translation>
    </message>
    <message>
        <source> ({reading_tok_s} tok/s)</source>
        <translation>（{reading_tok_s} tok/s）</translation>
    </message>
    <message>
        <source> Saved state cannot be carried over: {why}</source>
        <translation>无法保留其保存的状态：{why}</translation>
    </message>
    <message>
        <source> The file as it was is kept as {name}.</source>
        <translation>原来的文件保留为 {name}。</translation>
    </message>
    <message>
        <source> With K and V as q8_0, {smaller:,} do.</source>
        <translation>K 和 V 用 q8_0 时可有 {smaller:,} 个。</translation>
    </message>
    <message>
        <source> and </source>
        <translation>、</translation>
    </message>
    <message>
        <source> at {speed} GB/s</source>
        <translation>，速度 {speed} GB/s</translation>
    </message>
    <message>
        <source> in about {time}</source>
        <translation>，约需 {time}</translation>
    </message>
    <message>
        <source> in sequence 1</source>
        <translation>，在序列 1 中</translation>
    </message>
    <message>
        <source> of about {duration}</source>
        <translation>，约 {duration}</translation>
    </message>
    <message>
        <source> of {last}</source>
        <translation> / {last}</translation>
    </message>
    <message>
        <source> or </source>
        <translation>或</translation>
    </message>
    <message>
        <source>% of H</source>
        <translation>占 H 的 %</translation>
    </message>
    <message>
        <source>%n branches are in the cache</source>
        <translation>缓存中有 %n 个分支</translation>
    </message>
    <message>
        <source>%n branches in the cache</source>
        <translation>缓存中 %n 个分支</translation>
    </message>
    <message>
        <source>%n cells in the cache</source>
        <translation>缓存中 %n 个单元</translation>
    </message>
    <message>
        <source>%n changed</source>
        <translation>%n 项已更改</translation>
    </message>
    <message>
        <source>%n files</source>
        <translation>%n 个文件</translation>
    </message>
    <message>
        <source>%n messages deleted.</source>
        <translation>已删除 %n 条消息。</translation>
    </message>
    <message>
        <source>%n models in {repo}</source>
        <translation>{repo} 中有 %n 个模型</translation>
    </message>
    <message>
        <source>%n models.</source>
        <translation>%n 个模型。</translation>
    </message>
    <message>
        <source>%n more pinned</source>
        <translation>还有 %n 条固定消息</translation>
    </message>
    <message>
        <source>%n repositories; unfold one to see its files</source>
        <translation>%n 个仓库；展开可查看其中的文件</translation>
    </message>
    <message>
        <source>%n tokens</source>
        <translation>%n 个 token</translation>
    </message>
    <message>
        <source>%n tokens read</source>
        <translation>读取 %n 个 token</translation>
    </message>
    <message>
        <source>(generated tokens - 1) / (time of the last token - time of the first)</source>
        <translation>（生成的 token 数 - 1）/（最后一个 token 的时间 - 第一个的时间）</translation>
    </message>
    <message>
        <source>(prompt tokens - reused tokens) / wall time of prefill, K-shift included; a dash where fewer than {few_tokens} tokens were read</source>
        <translation>（提示词 token 数 - 复用的 token 数）/ 预填充的实际用时，包括 K-shift；读取少于 {few_tokens} 个 token 时显示短横线</translation>
    </message>
    <message>
        <source>(unverified: its program publishes no description of this format)</source>
        <translation>（未验证：该程序没有公开此格式的说明）</translation>
    </message>
    <message>
        <source>+%n more</source>
        <translation>另有 %n 条</translation>
    </message>
    <message>
        <source>, </source>
        <translation>，</translation>
    </message>
    <message>
        <source>, and no seq_id is free to keep it: all {n_seq_max} (n_seq_max) are taken</source>
        <translation>，且没有空闲的 seq_id 可以保留它：全部 {n_seq_max} 个（n_seq_max）都已占用</translation>
    </message>
    <message>
        <source>, audited {at}</source>
        <translation>，核对于 {at}</translation>
    </message>
    <message>
        <source>, before the rebuild</source>
        <translation>，重建之前</translation>
    </message>
    <message>
        <source>, not now</source>
        <translation>，不是现在</translation>
    </message>
    <message>
        <source>, that of a branch {ratio} times</source>
        <translation>，分支的为 {ratio} 倍</translation>
    </message>
    <message>
        <source>--copies imports once more what is here already.</source>
        <translation>--copies 会把这里已有的内容再导入一次。</translation>
    </message>
    <message>
        <source>--set takes KEY=VALUE with a number (it is {dumps}).</source>
        <translation>--set 的形式为 KEY=VALUE，值为数字（现在是 {dumps}）。</translation>
    </message>
    <message>
        <source>1 - largest free run / (N - U). For information: cells are placed one by one, so it makes nothing fail</source>
        <translation>1 - 最大空闲段 / (N - U)。仅供参考：单元逐个放置，因此不会导致失败</translation>
    </message>
    <message>
        <source>1 byte</source>
        <translation>1 字节</translation>
    </message>
    <message>
        <source>1 cell changed</source>
        <translation>1 个单元已变化</translation>
    </message>
    <message>
        <source>1 cell selected</source>
        <translation>已选择 1 个单元</translation>
    </message>
    <message>
        <source>1 deletion</source>
        <translation>1 项删除</translation>
    </message>
    <message>
        <source>1 message</source>
        <translation>1 条消息</translation>
    </message>
    <message>
        <source>1 message deleted.</source>
        <translation>已删除 1 条消息。</translation>
    </message>
    <message>
        <source>1 operation ago</source>
        <translation>1 次操作前</translation>
    </message>
    <message>
        <source>1 page</source>
        <translation>1 页</translation>
    </message>
    <message>
        <source>1 thread</source>
        <translation>1 个线程</translation>
    </message>
    <message>
        <source>1 token read</source>
        <translation>读取 1 个 token</translation>
    </message>
    <message>
        <source>1: on</source>
        <translation>1：开启</translation>
    </message>
    <message>
        <source>2 x the tensor bytes of the state</source>
        <translation>状态张量字节数的 2 倍</translation>
    </message>
    <message>
        <source>2 · layers · K/V heads · head size · cells · bytes</source>
        <translation>2 · 层数 · K/V head 数 · head 大小 · 单元数 · 字节数</translation>
    </message>
    <message>
        <source>2 · layers · hidden size · cells · bytes</source>
        <translation>2 · 层数 · 隐藏维度 · 单元数 · 字节数</translation>
    </message>
    <message>
        <source>30 s</source>
        <translation>30 秒</translation>
    </message>
    <message>
        <source>5 min</source>
        <translation>5 分钟</translation>
    </message>
    <message>
        <source>95 % interval</source>
        <translation>95 % 区间</translation>
    </message>
    <message>
        <source>: {placed} placed, {freed} freed</source>
        <translation>：放置 {placed} 个，释放 {freed} 个</translation>
    </message>
    <message>
        <source>; </source>
        <translation>；</translation>
    </message>
    <message>
        <source>; decoding reads {speed} GB/s, {how}</source>
        <translation>；解码读取速度 {speed} GB/s，{how}</translation>
    </message>
    <message>
        <source>; {most} MB at most</source>
        <translation>；最多 {most} MB</translation>
    </message>
    <message>
        <source>A Jinja text in the place of the model&apos;s chat template</source>
        <translation>用一段 Jinja 文本代替模型的对话模板</translation>
    </message>
    <message>
        <source>A batch of {n_batch} tokens is too small for {n_seq_max} sequences.</source>
        <translation>{n_batch} 个 token 的批次对 {n_seq_max} 个序列来说太小。</translation>
    </message>
    <message>
        <source>A branch of “{title}” {what}</source>
        <translation>“{title}”的一个分支：{what}</translation>
    </message>
    <message>
        <source>A cell of q8_0 takes 34 bytes for 32 numbers and one of q4_0 18: the formulas count that.</source>
        <translation>一个 q8_0 单元每 32 个数占 34 字节，q4_0 占 18 字节：公式已计入这一点。</translation>
    </message>
    <message>
        <source>A code is known when its tokens are on average {n:g} nats likelier than those of codes nobody told.</source>
        <translation>如果代码的 token 平均比没有人说过的代码的 token 可能性高 {n:g} nat，就算知道该代码。</translation>
    </message>
    <message>
        <source>A compaction brings a token to {compacted:.2g} of its time, a rebuild to {read:.2g}.</source>
        <translation>整理后一个 token 的用时为原来的 {compacted:.2g} 倍，重建后为 {read:.2g} 倍。</translation>
    </message>
    <message>
        <source>A context of {n_ctx:,} cells needs {gb} with this model, and {gb2} are free. </source>
        <translation>{n_ctx:,} 个单元的上下文用这个模型需要 {gb}，而空闲 {gb2}。</translation>
    </message>
    <message>
        <source>A conversation can be saved and brought back exactly; cells it shared become its own.</source>
        <translation>对话可以保存并精确恢复；它共享的单元会变成它自己的。</translation>
    </message>
    <message>
        <source>A conversation cannot be copied onto itself.</source>
        <translation>不能将对话复制到它自身。</translation>
    </message>
    <message>
        <source>A copy was saved to {file}.</source>
        <translation>副本已保存到 {file}。</translation>
    </message>
    <message>
        <source>A day with each policy (medians over the days)</source>
        <translation>各策略的一天（各天的中位数）</translation>
    </message>
    <message>
        <source>A journal that was exported, operation by operation, without any model.</source>
        <translation>逐个操作重放导出的操作记录，不需要模型。</translation>
    </message>
    <message>
        <source>A language model reads a text token by token, and a token is about three quarters of a word. For each token it computes two small lists of numbers in every layer, the key and the value. Later tokens look back at them to find out what was said before. To compute them all again for every new token would be far too slow, so the model keeps them in memory. This memory is called the KV cache, and it grows by the same amount with each token.

A chat is where the cache pays off. Each time you ask something, the whole conversation so far is sent to the model again, because the model itself remembers nothing. Without a cache it would have to read everything from the start, and each answer would begin later than the one before. With a cache only the words that are new are read. The beginning has not changed, so its keys and values are still right. But if a single word near the beginning is changed, everything behind it has to be read again, since each token has seen all those before it.

The cache has a price. It takes memory, which is why a long conversation needs a larger computer than a short one. When it is full, something has to go: old messages, other chats, or the precision of the numbers. A good program shows what is in it, and lets you choose.</source>
        <translation>语言模型逐个 token 地读取文本，一个 token 大约相当于一个汉字或一个词。对于每个 token，模型会在每一层计算两组数值：Key 和 Value。后面的 token 会回看它们，以了解前面说过什么。如果每生成一个新的 token 都要全部重新计算，就太慢了，所以模型把它们保存在内存中。这块内存叫做 KV 缓存，每多一个 token，它就增大同样的一份。

对话最能体现缓存的价值。模型自己什么也不记得，所以你每次提问，都要把到目前为止的整个对话重新发送给它。没有缓存，它每次都要从头读起，每个回答都会比前一个开始得更晚。有了缓存，只需读取新增的内容：开头没有变化，它的 Key 和 Value 就仍然有效。但如果靠近开头的地方改动了一个字，它后面的全部内容都要重新读取，因为每个 token 都看过它之前的所有 token。

缓存也有代价。它占用内存，因此长对话比短对话需要更多内存。缓存满了，就必须舍弃一些东西：旧消息、其他对话，或者数值的精度。好的程序会让你看到缓存里有什么，并由你来选择。</translation>
    </message>
    <message>
        <source>A line of the text has {longest:,} characters, and this model&apos;s tokenizer can take {longest_line:,}: break it up.</source>
        <translation>文本中有一行长 {longest:,} 个字符，而这个模型的分词器最多支持 {longest_line:,} 个：请分成几行。</translation>
    </message>
    <message>
        <source>A logical map of hashed blocks, as the server&apos;s events tell: not its memory, and never verified.</source>
        <translation>由服务器的事件给出的带哈希的块的逻辑图：不是它的内存，也从不验证。</translation>
    </message>
    <message>
        <source>A longer time</source>
        <translation>更长的时间范围</translation>
    </message>
    <message>
        <source>A memcpy of the {mb:,.1f} MB runs at {rate:.1f} GB/s; into memory that is new it takes {new} times as long, in {n} parts at the same time {threads} times. llama.cpp&apos;s get takes {get} times as long as the memcpy with flash attention and {slow} times without, where V is transposed; cells apart instead of side by side make it {scattered} times as long.</source>
        <translation>{mb:,.1f} MB 的 memcpy 速度为 {rate:.1f} GB/s；复制到新内存的用时为 {new} 倍，分成 {n} 份同时进行为 {threads} 倍。llama.cpp 的 get 用时与 memcpy 之比，有 flash attention 时为 {get}，没有时（V 转置）为 {slow}；单元分开而不相邻时为 {scattered} 倍。</translation>
    </message>
    <message>
        <source>A message could not be saved: its conversation is not in the database.</source>
        <translation>有一条消息无法保存：数据库中没有它所属的对话。</translation>
    </message>
    <message>
        <source>A message of another kind came from the address of KV events.</source>
        <translation>从 KV 事件的地址收到了另一种消息。</translation>
    </message>
    <message>
        <source>A message was changed ({edited}): {counts}</source>
        <translation>有一条消息被更改（{edited}）：{counts}</translation>
    </message>
    <message>
        <source>A model is open already: type here and press Enter. Everything is computed on this computer.</source>
        <translation>已经打开了一个模型：在这里输入，然后按 Enter。所有计算都在这台电脑上完成。</translation>
    </message>
    <message>
        <source>A new server</source>
        <translation>新服务器</translation>
    </message>
    <message>
        <source>A number is missing.</source>
        <translation>请填写一个数字。</translation>
    </message>
    <message>
        <source>A plain question. You can type your own below.</source>
        <translation>一个普通的问题。也可以在下方输入你自己的问题。</translation>
    </message>
    <message>
        <source>A position far from the others</source>
        <translation>远离其他位置的一个位置</translation>
    </message>
    <message>
        <source>A preset sets all samplers at once, and the system prompt where it has one</source>
        <translation>预设会一次设定所有采样器；如果其中有系统提示词，也会一并设定</translation>
    </message>
    <message>
        <source>A prompt</source>
        <translation>一段提示词</translation>
    </message>
    <message>
        <source>A prompt among {n} answers</source>
        <translation>{n} 个回答之间的一段提示词</translation>
    </message>
    <message>
        <source>A prompt in calls of n_batch tokens, n_ubatch {n}</source>
        <translation>按每次调用 n_batch 个 token 读取的提示词，n_ubatch {n}</translation>
    </message>
    <message>
        <source>A prompt must have some text.</source>
        <translation>提示词不能为空。</translation>
    </message>
    <message>
        <source>A prompt of {n:.0f} tokens in {pieces} pieces among {writers} answers makes their longest gap {gap} times that of the prompt at once, and is itself read in {read} times the time.</source>
        <translation>{n:.0f} 个 token 的提示词切成 {pieces} 块，夹在 {writers} 个回答之间时，回答的最长间隔是整段处理时的 {gap} 倍，读取提示词的用时为 {read} 倍。</translation>
    </message>
    <message>
        <source>A recurrent memory has one state per conversation: there is nothing to compact.</source>
        <translation>循环记忆中每个对话只有一个状态：没有可以整理的内容。</translation>
    </message>
    <message>
        <source>A recurrent state has no positions inside: only its number changes.</source>
        <translation>循环状态内部没有位置：只有它的编号会变。</translation>
    </message>
    <message>
        <source>A recurrent state holds the whole conversation: there is no copy of a part.</source>
        <translation>循环状态包含整个对话：无法只复制一部分。</translation>
    </message>
    <message>
        <source>A request with recycled ids takes {ratio} times one with a single id, both cleaned: which id it has makes a difference.</source>
        <translation>循环使用 id 的请求用时是单一 id 的 {ratio} 倍（两者都清理）：用哪个 id 有差别。</translation>
    </message>
    <message>
        <source>A request with recycled ids takes {ratio} times one with a single id, both cleaned: which id it has makes none.</source>
        <translation>循环使用 id 的请求用时是单一 id 的 {ratio} 倍（两者都清理）：用哪个 id 没有差别。</translation>
    </message>
    <message>
        <source>A saved conversation leaves out what the sliding window no longer sees.</source>
        <translation>保存的对话不包含滑动窗口已看不到的内容。</translation>
    </message>
    <message>
        <source>A scattered cache is at least {n:g} times slower with {kinds}.</source>
        <translation>使用 {kinds} 时，分散的缓存至少慢 {n:g} 倍。</translation>
    </message>
    <message>
        <source>A scattered cache is nowhere {n:g} times slower.</source>
        <translation>分散的缓存在任何情况下都没有慢到 {n:g} 倍。</translation>
    </message>
    <message>
        <source>A sequence breaker is a text of at most {n} bytes.</source>
        <translation>序列断点最多为 {n} 字节的文本。</translation>
    </message>
    <message>
        <source>A sequence {starts}; behind its last position {gaps}, and going back is {back}.</source>
        <translation>序列{starts}；最后位置之后{gaps}，回到之前的位置{back}。</translation>
    </message>
    <message>
        <source>A sequence {starts}; behind its last position {gaps}, and going back to one that is there is {back}: {taken} of {n} calls were taken. What was removed {stacks}: the same text after a removed one and in an empty cache differs by {difference:.3g} in its logits, with {left}.</source>
        <translation>序列{starts}；最后位置之后{gaps}，而回到已有的位置会{back}：{n} 次调用中有 {taken} 次被接受。被移除的内容{stacks}：移除之前的文本后再处理同一文本，与在空缓存中处理相比，logits 相差 {difference:.3g}，{left}。</translation>
    </message>
    <message>
        <source>A shift by 0 moves nothing.</source>
        <translation>移动 0 不会有任何变化。</translation>
    </message>
    <message>
        <source>A short Python function. You can attach files too: PDF, Word, text.</source>
        <translation>一个简短的 Python 函数。也可以附加文件：PDF、Word、文本。</translation>
    </message>
    <message>
        <source>A shorter time</source>
        <translation>更短的时间范围</translation>
    </message>
    <message>
        <source>A simulation: llama.cpp has no pages.</source>
        <translation>模拟：llama.cpp 没有页。</translation>
    </message>
    <message>
        <source>A smaller context makes every request faster.</source>
        <translation>上下文越小，每个请求越快。</translation>
    </message>
    <message>
        <source>A stop string is a text of at most {n} characters.</source>
        <translation>停止字符串最多为 {n} 个字符的文本。</translation>
    </message>
    <message>
        <source>A template is checked on this chat first</source>
        <translation>模板会先在这个对话上检查</translation>
    </message>
    <message>
        <source>A text of the logit bias has no characters.</source>
        <translation>logit 偏置中有一项文本没有字符。</translation>
    </message>
    <message>
        <source>A text that comes with kvdesk</source>
        <translation>kvdesk 自带的一段文本</translation>
    </message>
    <message>
        <source>A token behind {text:.0f} tokens, with {others:.0f} holes before them and no flash attention, takes {compacted} of its time after a compaction, {restored} in a new context that got the state, and {read} in one that read the text again. They cost {compacted_cost}, {restored_cost} and {read_cost}.</source>
        <translation>在 {text:.0f} 个 token 之后、前面有 {others:.0f} 个空洞且没有 flash attention 时，一个 token 在整理后的用时是原来的 {compacted}，在恢复了状态的新上下文中是 {restored}，在重新读取文本的新上下文中是 {read}。代价分别为 {compacted_cost}、{restored_cost} 和 {read_cost}。</translation>
    </message>
    <message>
        <source>A token in the full ring takes {compacted} times what it takes after a compaction.</source>
        <translation>环已满时，一个 token 的用时是整理之后的 {compacted} 倍。</translation>
    </message>
    <message>
        <source>A token is kept</source>
        <translation>已保存一个 token</translation>
    </message>
    <message>
        <source>A token is written fastest with {quiet} of {counts} threads on the quiet machine and with {loaded} beside one busy process; {most} threads, more than there are processors, take {most_over} times as long as the best, and {logical} beside a busy process {logical_over} times. A prompt is read fastest with {read_quiet} and {read_loaded}.</source>
        <translation>在安静的机器上，{counts} 个线程中用 {quiet} 个生成 token 最快；旁边有一个繁忙的进程时用 {loaded} 个最快。{most} 个线程多于处理器数，用时是最佳值的 {most_over} 倍；旁边有繁忙进程时，{logical} 个线程是 {logical_over} 倍。读取提示词最快的是 {read_quiet} 个和 {read_loaded} 个。</translation>
    </message>
    <message>
        <source>A token of a new chat over a bare context</source>
        <translation>新对话的一个 token 与空上下文之比</translation>
    </message>
    <message>
        <source>A token of the batch belongs to no sequence.</source>
        <translation>批次中有一个 token 不属于任何序列。</translation>
    </message>
    <message>
        <source>A token over the day</source>
        <translation>一天中的一个 token</translation>
    </message>
    <message>
        <source>A token with its text scattered</source>
        <translation>文本分散时的一个 token</translation>
    </message>
    <message>
        <source>A token with {n} cells in use, over the same with its cells side by side — {said}.</source>
        <translation>有 {n} 个已用单元时，一个 token 的用时与单元相邻时之比：{said}。</translation>
    </message>
    <message>
        <source>A token&apos;s time is that of an answer in a new chat beside all others, over one in an empty context without kvdesk, before it and after it; a machine that becomes slower by itself changes both.</source>
        <translation>一个 token 的用时，是在其他对话旁的新对话中回答的用时，与前后在没有 kvdesk 的空上下文中的用时之比；机器自身变慢时两者都会变化。</translation>
    </message>
    <message>
        <source>A window forgets none of {n} codes; a bare ring reads on with {ring:.2g} times the perplexity.</source>
        <translation>窗口没有忘记 {n} 个代码中的任何一个；单纯的环继续读取时困惑度为 {ring:.2g} 倍。</translation>
    </message>
    <message>
        <source>A window forgets {lost} of {n} codes; a bare ring also raises the perplexity {ring:.2g} times.</source>
        <translation>窗口忘记了 {n} 个代码中的 {lost} 个；单纯的环还会使困惑度变为 {ring:.2g} 倍。</translation>
    </message>
    <message>
        <source>API key</source>
        <translation>API 密钥</translation>
    </message>
    <message>
        <source>About</source>
        <translation>关于</translation>
    </message>
    <message>
        <source>About kvdesk</source>
        <translation>关于 kvdesk</translation>
    </message>
    <message>
        <source>Above 1, tokens that came recently are less likely; 1 changes nothing</source>
        <translation>大于 1 时，近期出现过的 token 可能性降低；1 表示不改变</translation>
    </message>
    <message>
        <source>Access…</source>
        <translation>访问…</translation>
    </message>
    <message>
        <source>Actions</source>
        <translation>操作</translation>
    </message>
    <message>
        <source>Adapt threads to load</source>
        <translation>随负载调整线程</translation>
    </message>
    <message>
        <source>Adaptive P decay</source>
        <translation>Adaptive P 衰减</translation>
    </message>
    <message>
        <source>Adaptive P target</source>
        <translation>Adaptive P 目标</translation>
    </message>
    <message>
        <source>Address</source>
        <translation>地址</translation>
    </message>
    <message>
        <source>Address of the hub or of a mirror, and your token</source>
        <translation>hub 或镜像的地址，以及你的 token</translation>
    </message>
    <message>
        <source>Address of the model hub</source>
        <translation>模型 hub 的地址</translation>
    </message>
    <message>
        <source>After</source>
        <translation>之后</translation>
    </message>
    <message>
        <source>After an answer, read the next tokens of the chat template into the cache, so that your next message starts sooner</source>
        <translation>回答结束后，将对话模板接下来的 token 预先读入缓存，使你的下一条消息更快开始</translation>
    </message>
    <message>
        <source>After each chunk, always the likeliest</source>
        <translation>每个分块之后，总是取最可能的</translation>
    </message>
    <message>
        <source>After many requests the context is to be rebuilt.</source>
        <translation>处理许多请求之后，应当重建上下文。</translation>
    </message>
    <message>
        <source>Age</source>
        <translation>新旧</translation>
    </message>
    <message>
        <source>Aligned copies, several threads and whole runs of cells make defragmentation cheap.</source>
        <translation>对齐的复制、多个线程和整段的单元使碎片整理的代价很低。</translation>
    </message>
    <message>
        <source>All</source>
        <translation>全部</translation>
    </message>
    <message>
        <source>All cells of a conversation can be removed.</source>
        <translation>可以移除一个对话的所有单元。</translation>
    </message>
    <message>
        <source>All cells of all caches, used or not</source>
        <translation>所有缓存的全部单元，无论是否使用</translation>
    </message>
    <message>
        <source>All chats that are not here yet are imported, or none.</source>
        <translation>这里还没有的对话会全部导入，否则一个也不导入。</translation>
    </message>
    <message>
        <source>All files (*)</source>
        <translation>所有文件 (*)</translation>
    </message>
    <message>
        <source>All numbers</source>
        <translation>所有数值</translation>
    </message>
    <message>
        <source>All of it</source>
        <translation>全部内容</translation>
    </message>
    <message>
        <source>All of its chats are empty.</source>
        <translation>其中的对话都是空的。</translation>
    </message>
    <message>
        <source>All of these chats are here already.</source>
        <translation>这些对话这里都已经有了。</translation>
    </message>
    <message>
        <source>All of these chats are imported, or none.</source>
        <translation>这些对话会全部导入，否则一个也不导入。</translation>
    </message>
    <message>
        <source>All operations</source>
        <translation>所有操作</translation>
    </message>
    <message>
        <source>All other conversations are removed.</source>
        <translation>移除其他所有对话。</translation>
    </message>
    <message>
        <source>All parameters of this chat are as in the settings</source>
        <translation>这个对话的所有参数都与设置相同</translation>
    </message>
    <message>
        <source>All sequences are in use: close a conversation, so that one is free to compute in.</source>
        <translation>所有序列都在使用：请关闭一个对话，留出一个用于计算。</translation>
    </message>
    <message>
        <source>All series in {unit}</source>
        <translation>所有单位为 {unit} 的曲线</translation>
    </message>
    <message>
        <source>All series without a unit</source>
        <translation>所有没有单位的曲线</translation>
    </message>
    <message>
        <source>All tensors of the model; mapped from the file, so the system may drop them when memory is short</source>
        <translation>模型的所有张量；从文件映射，内存不足时系统可能会释放</translation>
    </message>
    <message>
        <source>All {n_seq_max} sequences are answering. Wait for one to end.</source>
        <translation>全部 {n_seq_max} 个序列都在生成回答。请等待其中一个结束。</translation>
    </message>
    <message>
        <source>All {n} cells in use are removed.</source>
        <translation>全部 {n} 个已用单元都会被移除。</translation>
    </message>
    <message>
        <source>Allow other computers</source>
        <translation>允许其他电脑访问</translation>
    </message>
    <message>
        <source>Also the texts that are otherwise left out of logs, settings and journal. Of other chats too.</source>
        <translation>平时不写入日志、设置和操作记录的文本也包括在内。其他对话的文本同样包括。</translation>
    </message>
    <message>
        <source>An address has a name or a number, such as 192.168.1.5:8080.</source>
        <translation>地址应包含名称或数字，例如 192.168.1.5:8080。</translation>
    </message>
    <message>
        <source>An address that other computers can reach needs an API key: {host}.</source>
        <translation>其他电脑可以访问的地址需要 API 密钥：{host}。</translation>
    </message>
    <message>
        <source>An answer ends before the first of these texts, one a line; \n is the end of a line</source>
        <translation>回答在首次出现其中任一文本之前结束，每行一个；\n 表示换行</translation>
    </message>
    <message>
        <source>An answer is being written: the cache is compacted only between answers.</source>
        <translation>正在生成回答：只在回答之间整理缓存。</translation>
    </message>
    <message>
        <source>An answer is being written; stop it first.</source>
        <translation>正在生成回答，请先停止。</translation>
    </message>
    <message>
        <source>An entry is invalid.</source>
        <translation>有一项输入无效。</translation>
    </message>
    <message>
        <source>An id that is used again may leave its state in confusion; a fresh one for each request would be safe, as long as it is below n_seq_max.</source>
        <translation>重复使用的 id 可能使其状态混乱；每个请求用新的 id 更安全，只要它小于 n_seq_max。</translation>
    </message>
    <message>
        <source>And in five words?</source>
        <translation>用五个词来概括呢？</translation>
    </message>
    <message>
        <source>And, where it is ticked</source>
        <translation>以及勾选后才包含的内容</translation>
    </message>
    <message>
        <source>Another kvdesk. It answers chats.</source>
        <translation>另一个 kvdesk。它可以回答对话。</translation>
    </message>
    <message>
        <source>Another kvdesk: its cells are shown as they change, and it verifies them itself.</source>
        <translation>另一个 kvdesk：它的单元会随变化显示，并由它自己验证。</translation>
    </message>
    <message>
        <source>Another model was opened.</source>
        <translation>已打开其他模型。</translation>
    </message>
    <message>
        <source>Answer</source>
        <translation>回答</translation>
    </message>
    <message>
        <source>Answer again</source>
        <translation>重新回答</translation>
    </message>
    <message>
        <source>Answer again (Ctrl+R)</source>
        <translation>重新回答 (Ctrl+R)</translation>
    </message>
    <message>
        <source>Answer length</source>
        <translation>回答长度</translation>
    </message>
    <message>
        <source>Answer {i} of {n}</source>
        <translation>第 {i} 个回答，共 {n} 个</translation>
    </message>
    <message>
        <source>Answers are JSON that this schema describes; {} is any object</source>
        <translation>回答是符合这个 schema 的 JSON；{} 表示任意对象</translation>
    </message>
    <message>
        <source>Answers at once</source>
        <translation>同时进行的回答</translation>
    </message>
    <message>
        <source>Answers follow this grammar, in llama.cpp&apos;s notation GBNF; it begins at the rule root</source>
        <translation>回答遵循这个语法，采用 llama.cpp 的 GBNF 写法；从规则 root 开始</translation>
    </message>
    <message>
        <source>Answers that began, since the model was opened</source>
        <translation>模型打开以来开始的回答</translation>
    </message>
    <message>
        <source>Answers to “{question}”</source>
        <translation>对“{question}”的回答</translation>
    </message>
    <message>
        <source>Any range of positions can be removed.</source>
        <translation>可以移除任意范围的位置。</translation>
    </message>
    <message>
        <source>Any range of positions can be shared with another conversation.</source>
        <translation>任意范围的位置都可以与另一个对话共享。</translation>
    </message>
    <message>
        <source>Appearance</source>
        <translation>外观</translation>
    </message>
    <message>
        <source>Application</source>
        <translation>应用程序</translation>
    </message>
    <message>
        <source>Apply</source>
        <translation>应用</translation>
    </message>
    <message>
        <source>Apply and rebuild</source>
        <translation>应用并重建</translation>
    </message>
    <message>
        <source>Architecture</source>
        <translation>架构</translation>
    </message>
    <message>
        <source>Archive</source>
        <translation>归档</translation>
    </message>
    <message>
        <source>Archive the chat, or take it out</source>
        <translation>归档对话，或取消归档</translation>
    </message>
    <message>
        <source>Archived (%n)</source>
        <translation>已归档（%n）</translation>
    </message>
    <message>
        <source>As in a new chat</source>
        <translation>与新对话相同</translation>
    </message>
    <message>
        <source>As its address</source>
        <translation>与其地址相同</translation>
    </message>
    <message>
        <source>As llama.cpp names it</source>
        <translation>llama.cpp 中的名称</translation>
    </message>
    <message>
        <source>As text</source>
        <translation>作为文本</translation>
    </message>
    <message>
        <source>As the file says</source>
        <translation>按文件所述</translation>
    </message>
    <message>
        <source>Ask twice: see the second answer start sooner</source>
        <translation>问两次：看第二个回答更快开始</translation>
    </message>
    <message>
        <source>Asking the hub…</source>
        <translation>正在询问 hub…</translation>
    </message>
    <message>
        <source>Asking the server…</source>
        <translation>正在询问服务器…</translation>
    </message>
    <message>
        <source>At most {memory_bytes} of memory, one core, {about}</source>
        <translation>最多占用 {memory_bytes} 内存和一个核心，{about}</translation>
    </message>
    <message>
        <source>Attach all of {name} again</source>
        <translation>重新附加完整的 {name}</translation>
    </message>
    <message>
        <source>Attach files</source>
        <translation>附加文件</translation>
    </message>
    <message>
        <source>Attach files…</source>
        <translation>附加文件…</translation>
    </message>
    <message>
        <source>Attach text, code, PDF, DOCX or RTF files (Ctrl+Shift+A); dropping and pasting them works too</source>
        <translation>附加文本、代码、PDF、DOCX 或 RTF 文件（Ctrl+Shift+A）；也可以拖放或粘贴</translation>
    </message>
    <message>
        <source>Attachments</source>
        <translation>附件</translation>
    </message>
    <message>
        <source>Attention moves exactly; the recurrent state keeps what it has seen.</source>
        <translation>注意力部分的移动是精确的；循环状态保留它已看到的内容。</translation>
    </message>
    <message>
        <source>Attention reads {n:,} cells, and would after compacting too.</source>
        <translation>注意力读取 {n:,} 个单元，整理后也一样。</translation>
    </message>
    <message>
        <source>Attention reads {n:,} cells, and would afterwards too: no speed is gained.</source>
        <translation>注意力读取 {n:,} 个单元，之后也一样：速度不会提升。</translation>
    </message>
    <message>
        <source>Attention sinks</source>
        <translation>Attention sinks</translation>
    </message>
    <message>
        <source>Attention then reads every cell up to n_kv, free ones too; its sums depend on where cells lie.</source>
        <translation>此时注意力会读取到 n_kv 为止的每个单元，包括空闲的；求和结果取决于单元所在的位置。</translation>
    </message>
    <message>
        <source>Attention would read {after:,} cells instead of {before:,}. What that gains has not been measured here yet: it needs answers over different spans.</source>
        <translation>注意力将读取 {after:,} 个单元，而不是 {before:,} 个。这里还没有测得由此提升多少：需要不同跨度的回答。</translation>
    </message>
    <message>
        <source>Audit</source>
        <translation>核对</translation>
    </message>
    <message>
        <source>Audit at {at}: {result}</source>
        <translation>{at} 的核对结果：{result}</translation>
    </message>
    <message>
        <source>Audit the cell map</source>
        <translation>核对单元图</translation>
    </message>
    <message>
        <source>Automatic compaction is off.</source>
        <translation>自动整理已关闭。</translation>
    </message>
    <message>
        <source>B over A</source>
        <translation>B 相对于 A</translation>
    </message>
    <message>
        <source>Back</source>
        <translation>返回</translation>
    </message>
    <message>
        <source>Back to now</source>
        <translation>返回现在</translation>
    </message>
    <message>
        <source>Back to the chat</source>
        <translation>返回对话</translation>
    </message>
    <message>
        <source>Back to the chat (Esc)</source>
        <translation>返回对话 (Esc)</translation>
    </message>
    <message>
        <source>Back to the chats</source>
        <translation>返回对话列表</translation>
    </message>
    <message>
        <source>Back to the chats (Ctrl+Shift+L)</source>
        <translation>返回对话 (Ctrl+Shift+L)</translation>
    </message>
    <message>
        <source>Back to the chats (Esc)</source>
        <translation>返回对话 (Esc)</translation>
    </message>
    <message>
        <source>Back to the default</source>
        <translation>恢复默认值</translation>
    </message>
    <message>
        <source>Back to the default: {value}</source>
        <translation>恢复默认值：{value}</translation>
    </message>
    <message>
        <source>Batch</source>
        <translation>批次</translation>
    </message>
    <message>
        <source>Batch size</source>
        <translation>批大小</translation>
    </message>
    <message>
        <source>Batches</source>
        <translation>批次</translation>
    </message>
    <message>
        <source>Batches and threads</source>
        <translation>批大小与线程</translation>
    </message>
    <message>
        <source>Batches cut into more than one ubatch, of {n_decodes}</source>
        <translation>被切成多个 ubatch 的批次，共 {n_decodes} 个</translation>
    </message>
    <message>
        <source>Batches should be sorted by length, prompts kept apart from answers.</source>
        <translation>批次应按长度排序，提示词与回答分开。</translation>
    </message>
    <message>
        <source>Because all earlier tokens are sent again: the last request takes {ratio:.2g} times the first.</source>
        <translation>因为之前的所有 token 都被重新发送：最后一个请求的用时是第一个的 {ratio:.2g} 倍。</translation>
    </message>
    <message>
        <source>Becomes a version of its own, and is answered; the question as it was stays.</source>
        <translation>会成为一个单独的版本并得到回答；原来的问题保持不变。</translation>
    </message>
    <message>
        <source>Becomes a version of its own; the answer as it was stays.</source>
        <translation>会成为一个单独的版本；原来的回答保持不变。</translation>
    </message>
    <message>
        <source>Begins a prompt</source>
        <translation>是提示词的开头</translation>
    </message>
    <message>
        <source>Being written…</source>
        <translation>正在生成…</translation>
    </message>
    <message>
        <source>Between streams only a whole conversation can be copied: llama.cpp would abort.</source>
        <translation>stream 之间只能复制整个对话：否则 llama.cpp 会中止。</translation>
    </message>
    <message>
        <source>Block {hash}, {n} tokens, on {tiers}</source>
        <translation>块 {hash}，{n} 个 token，位于 {tiers}</translation>
    </message>
    <message>
        <source>Blocks</source>
        <translation>块</translation>
    </message>
    <message>
        <source>Blocks from which several prompts go on: their beginning is stored once</source>
        <translation>有多个提示词从其后继续的块：它们的开头只存储一份</translation>
    </message>
    <message>
        <source>Blocks of 16 would compute {blocks:.2g} times the prompt tokens, and {empty:.0%} of their slots would be empty; holes were {holes:.0%} here.</source>
        <translation>块大小为 16 时，需要计算的 token 是提示词的 {blocks:.2g} 倍，{empty:.0%} 的槽位为空；这里的空洞为 {holes:.0%}。</translation>
    </message>
    <message>
        <source>Blocks that were evicted or cleared since the first message</source>
        <translation>第一条消息以来被移除或清除的块</translation>
    </message>
    <message>
        <source>Branches</source>
        <translation>分支</translation>
    </message>
    <message>
        <source>Branches (Ctrl+Shift+B)</source>
        <translation>分支 (Ctrl+Shift+B)</translation>
    </message>
    <message>
        <source>Branches of this chat</source>
        <translation>这个对话的分支</translation>
    </message>
    <message>
        <source>Bring it back where it stood (Ctrl+Z)</source>
        <translation>恢复到原来的位置 (Ctrl+Z)</translation>
    </message>
    <message>
        <source>But the chat template refuses what is left: {error}</source>
        <translation>但对话模板不接受剩下的内容：{error}</translation>
    </message>
    <message>
        <source>By {property}</source>
        <translation>按{property}</translation>
    </message>
    <message>
        <source>Bytes</source>
        <translation>字节</translation>
    </message>
    <message>
        <source>Bytes / (get + set)</source>
        <translation>字节 /（读取 + 写入的时间）</translation>
    </message>
    <message>
        <source>Bytes moved</source>
        <translation>移动的字节</translation>
    </message>
    <message>
        <source>Bytes moved are all weights, and K and V of the whole attention span: flash attention skips cells that are masked, so that a token may move less.</source>
        <translation>移动的字节包括全部权重，以及整个注意力跨度的 K 和 V：flash attention 会跳过被屏蔽的单元，因此一个 token 实际移动的可能更少。</translation>
    </message>
    <message>
        <source>Bytes of a cache, f16</source>
        <translation>缓存的字节数，f16</translation>
    </message>
    <message>
        <source>CPU threads for reading prompts (prefill)</source>
        <translation>读取提示词（预填充）的 CPU 线程</translation>
    </message>
    <message>
        <source>CPU threads for writing answers</source>
        <translation>生成回答的 CPU 线程</translation>
    </message>
    <message>
        <source>Cache</source>
        <translation>缓存</translation>
    </message>
    <message>
        <source>Cache inspector (Ctrl+I)</source>
        <translation>缓存检查器 (Ctrl+I)</translation>
    </message>
    <message>
        <source>Cache taken</source>
        <translation>缓存占用</translation>
    </message>
    <message>
        <source>Calls that kvdesk did not make, because llama.cpp would have aborted or damaged the cache</source>
        <translation>kvdesk 没有执行的调用，因为 llama.cpp 会中止或损坏缓存</translation>
    </message>
    <message>
        <source>Can a ring or a sliding window take the place of defragmentation, and what does it forget?</source>
        <translation>环形缓冲区或滑动窗口能代替碎片整理吗？它会忘记什么？</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Cancel (Esc)</source>
        <translation>取消 (Esc)</translation>
    </message>
    <message>
        <source>Cancel it: it is not sent</source>
        <translation>取消它：不会发送</translation>
    </message>
    <message>
        <source>Cancel this queued message</source>
        <translation>取消这条排队的消息</translation>
    </message>
    <message>
        <source>Cannot be told from this run: {names}. The interval reaches beyond the value in brackets, from which growth counts; a longer run would make it narrower.</source>
        <translation>这次运行无法判断：{names}。区间超出了括号中的值，从该值起才算增长；运行更久会使区间变窄。</translation>
    </message>
    <message>
        <source>Carry over their saved state</source>
        <translation>保留其保存的状态</translation>
    </message>
    <message>
        <source>Carrying conversations over</source>
        <translation>正在保留对话</translation>
    </message>
    <message>
        <source>Cell map of the KV cache</source>
        <translation>KV 缓存的单元图</translation>
    </message>
    <message>
        <source>Cells</source>
        <translation>单元</translation>
    </message>
    <message>
        <source>Cells and positions are restored, but not the holes between the cells: they take too much memory.</source>
        <translation>会恢复单元和位置，但不恢复单元之间的空洞：它们占用的内存太多。</translation>
    </message>
    <message>
        <source>Cells in a run</source>
        <translation>每段的单元数</translation>
    </message>
    <message>
        <source>Cells in use</source>
        <translation>已用单元</translation>
    </message>
    <message>
        <source>Cells in use at the end of each request</source>
        <translation>每个请求结束时的已用单元</translation>
    </message>
    <message>
        <source>Cells left behind, positions that do not start from 0, a sequence id used again, the whole sequence sent at each step, or too many threads.</source>
        <translation>遗留的单元、不从 0 开始的位置、重复使用的序列 id、每步都发送完整序列，或线程太多。</translation>
    </message>
    <message>
        <source>Cells marked unused are scattered over the buffer, are read all the same, and have to be tidied up.</source>
        <translation>标记为未使用的单元散布在缓冲区中，仍会被读取，必须整理。</translation>
    </message>
    <message>
        <source>Cells of its cache</source>
        <translation>其缓存的单元</translation>
    </message>
    <message>
        <source>Cells of its cache: {used} of {size} used, high-water mark {mark}</source>
        <translation>其缓存的单元：共 {size} 个，已用 {used} 个，高水位 {mark} 个</translation>
    </message>
    <message>
        <source>Cells of others</source>
        <translation>其他序列的单元</translation>
    </message>
    <message>
        <source>Cells of the cache</source>
        <translation>缓存的单元数</translation>
    </message>
    <message>
        <source>Cells of the context; 64 of them are for the questions</source>
        <translation>上下文的单元数；其中 64 个用于提问</translation>
    </message>
    <message>
        <source>Cells of this message</source>
        <translation>这条消息的单元</translation>
    </message>
    <message>
        <source>Cells that at least one sequence holds</source>
        <translation>至少属于一个序列的单元</translation>
    </message>
    <message>
        <source>Cells that at least one sequence holds (the engine&apos;s `used`)</source>
        <translation>至少属于一个序列的单元（引擎的 `used`）</translation>
    </message>
    <message>
        <source>Cells that attention reads (`n_kv`), up to the dashed line in the map</source>
        <translation>注意力读取的单元（`n_kv`），到图中的虚线为止</translation>
    </message>
    <message>
        <source>Cells that each of 63 other sequences takes at most</source>
        <translation>其他 63 个序列每个最多占用的单元</translation>
    </message>
    <message>
        <source>Cells that find_slot tested for the last batch, wrap included</source>
        <translation>find_slot 为上一个批次检查的单元，包括回绕</translation>
    </message>
    <message>
        <source>Cells that hold the sequence</source>
        <translation>该序列占用的单元</translation>
    </message>
    <message>
        <source>Cells that more than one sequence holds</source>
        <translation>属于多个序列的单元</translation>
    </message>
    <message>
        <source>Cells that more than one sequence holds: stored once</source>
        <translation>属于多个序列的单元：只存储一份</translation>
    </message>
    <message>
        <source>Cells whose position had moved, of all flushes</source>
        <translation>所有 K-shift 中位置移动过的单元</translation>
    </message>
    <message>
        <source>Cells: the {max_streams} fullest of {n} streams</source>
        <translation>单元：{n} 个 stream 中最满的 {max_streams} 个</translation>
    </message>
    <message>
        <source>Cells; also a half, a quarter, an eighth</source>
        <translation>单元数；也测一半、四分之一、八分之一</translation>
    </message>
    <message>
        <source>Cells; also a quarter and a half</source>
        <translation>单元数；也测四分之一和一半</translation>
    </message>
    <message>
        <source>Change system prompt, sampling and template of this chat ({keys})</source>
        <translation>更改这个对话的系统提示词、采样和模板（{keys}）</translation>
    </message>
    <message>
        <source>Change the cache by hand: remove, fork, shift, swap, compact</source>
        <translation>手动更改缓存：移除、分叉、移动、换出换入、整理</translation>
    </message>
    <message>
        <source>Changes of a chat</source>
        <translation>一个对话的更改</translation>
    </message>
    <message>
        <source>Chat</source>
        <translation>对话</translation>
    </message>
    <message>
        <source>Chat template of its own</source>
        <translation>单独的对话模板</translation>
    </message>
    <message>
        <source>Chat with GGUF models on a laptop CPU and watch what the KV cache is doing.</source>
        <translation>在笔记本电脑的 CPU 上与 GGUF 模型对话，并查看 KV 缓存在做什么。</translation>
    </message>
    <message>
        <source>Chat with GGUF models on a laptop, and see what the KV cache is doing.</source>
        <translation>在笔记本电脑上与 GGUF 模型对话，并查看 KV 缓存在做什么。</translation>
    </message>
    <message>
        <source>Chat with a model that llama-server, vLLM, another kvdesk or the like runs</source>
        <translation>与 llama-server、vLLM、另一个 kvdesk 等运行的模型对话</translation>
    </message>
    <message>
        <source>Chat with models on this computer, and see what the KV cache is doing.</source>
        <translation>与这台电脑上的模型对话，并查看 KV 缓存在做什么。</translation>
    </message>
    <message>
        <source>Chat: {text}</source>
        <translation>对话：{text}</translation>
    </message>
    <message>
        <source>Chats</source>
        <translation>对话</translation>
    </message>
    <message>
        <source>Chats (Ctrl+B)</source>
        <translation>对话列表 (Ctrl+B)</translation>
    </message>
    <message>
        <source>Chats are answered there: by llama-server, vLLM, SGLang, another kvdesk, or any server that speaks OpenAI&apos;s protocol. Your messages are sent to it.</source>
        <translation>对话在那里回答：由 llama-server、vLLM、SGLang、另一个 kvdesk，或任何使用 OpenAI 协议的服务器。你的消息会发送给它。</translation>
    </message>
    <message>
        <source>Chats from a file of kvdesk, ChatGPT, Open WebUI, LM Studio, Jan or llama.cpp&apos;s web UI. All of its chats are imported, or none. What is here already is left out, and what is damaged.</source>
        <translation>从文件导入对话：可以是 kvdesk、ChatGPT、Open WebUI、LM Studio、Jan 或 llama.cpp 网页界面的文件。其中的对话要么全部导入，要么都不导入。已经存在的和已损坏的会跳过。</translation>
    </message>
    <message>
        <source>Chats in the cache at the same time, at most</source>
        <translation>同时在缓存中的对话数上限</translation>
    </message>
    <message>
        <source>Chats of kvdesk, ChatGPT, Open WebUI, LM Studio, Jan, llama.cpp ({endings})</source>
        <translation>kvdesk、ChatGPT、Open WebUI、LM Studio、Jan、llama.cpp 的对话 ({endings})</translation>
    </message>
    <message>
        <source>Chats of yesterday</source>
        <translation>昨天的对话</translation>
    </message>
    <message>
        <source>Chats to a file. JSON has everything and can be imported; Markdown and HTML are for reading.</source>
        <translation>把对话写入文件。JSON 包含全部内容，可以再导入；Markdown 和 HTML 供阅读。</translation>
    </message>
    <message>
        <source>Choose a file…</source>
        <translation>选择文件…</translation>
    </message>
    <message>
        <source>Choose a grammar or a JSON schema: there can be only one.</source>
        <translation>语法和 JSON schema 只能选用一种。</translation>
    </message>
    <message>
        <source>Choose a journal</source>
        <translation>选择操作记录</translation>
    </message>
    <message>
        <source>Choose a model</source>
        <translation>选择模型</translation>
    </message>
    <message>
        <source>Choose a text</source>
        <translation>选择文本</translation>
    </message>
    <message>
        <source>Choose among the K most likely tokens; 0 among all</source>
        <translation>从可能性最高的 K 个 token 中选择；0 表示从全部中选择</translation>
    </message>
    <message>
        <source>Choose among the most likely tokens whose probabilities add up to P; 1 among all</source>
        <translation>从概率累计达到 P 的最可能的 token 中选择；1 表示从全部中选择</translation>
    </message>
    <message>
        <source>Choose among the tokens nearest to the expected information whose probabilities add up to P; 1 among all</source>
        <translation>从最接近期望信息量、概率累计达到 P 的 token 中选择；1 表示从全部中选择</translation>
    </message>
    <message>
        <source>Choose its cells for an operation</source>
        <translation>选择其单元进行操作</translation>
    </message>
    <message>
        <source>Chooses tokens so that each surprises as much as the target says, in the place of all samplers but the temperature</source>
        <translation>使每个 token 的意外程度接近目标值，代替温度以外的所有采样器</translation>
    </message>
    <message>
        <source>Chooses tokens whose probability is near this one, on average; below 0 it is off</source>
        <translation>选择概率平均接近这个值的 token；小于 0 时关闭</translation>
    </message>
    <message>
        <source>Chunks</source>
        <translation>分块</translation>
    </message>
    <message>
        <source>Clear</source>
        <translation>清除</translation>
    </message>
    <message>
        <source>Clear the cache</source>
        <translation>清空缓存</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>关闭</translation>
    </message>
    <message>
        <source>Close (Esc)</source>
        <translation>关闭 (Esc)</translation>
    </message>
    <message>
        <source>Close and lose what is not saved?</source>
        <translation>关闭并丢弃未保存的内容？</translation>
    </message>
    <message>
        <source>Close the branches</source>
        <translation>关闭分支视图</translation>
    </message>
    <message>
        <source>Code</source>
        <translation>代码</translation>
    </message>
    <message>
        <source>Collapse the folder, or go to its head</source>
        <translation>折叠文件夹，或跳到文件夹标题</translation>
    </message>
    <message>
        <source>Colour the blocks by</source>
        <translation>块的着色方式</translation>
    </message>
    <message>
        <source>Colour the cell map by</source>
        <translation>单元图的着色方式</translation>
    </message>
    <message>
        <source>Colour: {meaning}</source>
        <translation>颜色：{meaning}</translation>
    </message>
    <message>
        <source>Coloured by {property}: {entries}</source>
        <translation>按{property}着色：{entries}</translation>
    </message>
    <message>
        <source>Columns: number, operation and reason, cells changed, time</source>
        <translation>列：序号、操作及原因、变化的单元、用时</translation>
    </message>
    <message>
        <source>Command palette</source>
        <translation>命令面板</translation>
    </message>
    <message>
        <source>Compact</source>
        <translation>整理</translation>
    </message>
    <message>
        <source>Compact automatically</source>
        <translation>自动整理</translation>
    </message>
    <message>
        <source>Compact the cache</source>
        <translation>整理缓存</translation>
    </message>
    <message>
        <source>Compact the cache between answers when the speed gained is worth the time</source>
        <translation>当速度的提升值得所花的时间时，在回答之间整理缓存</translation>
    </message>
    <message>
        <source>Compact the cache…</source>
        <translation>整理缓存…</translation>
    </message>
    <message>
        <source>Compaction</source>
        <translation>整理</translation>
    </message>
    <message>
        <source>Compaction does not pay here: at best ({policy}) the day takes {ratio:.2g} of its time.</source>
        <translation>这里不值得整理：最好的情况（{policy}）下，一天的用时为原来的 {ratio:.2g} 倍。</translation>
    </message>
    <message>
        <source>Compaction pays: {policy}, the day takes {ratio:.2g} of its time.</source>
        <translation>值得整理：使用{policy}，一天的用时为原来的 {ratio:.2g} 倍。</translation>
    </message>
    <message>
        <source>Compaction: {name}</source>
        <translation>整理：{name}</translation>
    </message>
    <message>
        <source>Compact…</source>
        <translation>整理…</translation>
    </message>
    <message>
        <source>Compare the answers side by side</source>
        <translation>并排比较各个回答</translation>
    </message>
    <message>
        <source>Compare these answers</source>
        <translation>比较这些回答</translation>
    </message>
    <message>
        <source>Compared with the engine&apos;s own state afterwards: the map agrees.</source>
        <translation>之后与引擎自身的状态比较：单元图一致。</translation>
    </message>
    <message>
        <source>Compares every cell with the engine&apos;s own state</source>
        <translation>将每个单元与引擎自身的状态进行比较</translation>
    </message>
    <message>
        <source>Complete</source>
        <translation>已完成</translation>
    </message>
    <message>
        <source>Computes the conversation again in a free sequence and compares the logits of the next token</source>
        <translation>在一个空闲序列中重新计算这个对话，并比较下一个 token 的 logits</translation>
    </message>
    <message>
        <source>Connect</source>
        <translation>连接</translation>
    </message>
    <message>
        <source>Connect to a server</source>
        <translation>连接到服务器</translation>
    </message>
    <message>
        <source>Connect to a server…</source>
        <translation>连接到服务器…</translation>
    </message>
    <message>
        <source>Contents of the report</source>
        <translation>报告的内容</translation>
    </message>
    <message>
        <source>Context</source>
        <translation>上下文</translation>
    </message>
    <message>
        <source>Context full</source>
        <translation>上下文已满</translation>
    </message>
    <message>
        <source>Context size</source>
        <translation>上下文长度</translation>
    </message>
    <message>
        <source>Context whose journal is shown</source>
        <translation>显示其操作记录的上下文</translation>
    </message>
    <message>
        <source>Context: show what it is filled with</source>
        <translation>上下文：显示它由哪些内容占用</translation>
    </message>
    <message>
        <source>Context: {n:,} tokens.</source>
        <translation>上下文：{n:,} 个 token。</translation>
    </message>
    <message>
        <source>Contexts</source>
        <translation>上下文</translation>
    </message>
    <message>
        <source>Continue the answer</source>
        <translation>继续回答</translation>
    </message>
    <message>
        <source>Continue where it ended: only new tokens are computed</source>
        <translation>从结束处继续：只计算新的 token</translation>
    </message>
    <message>
        <source>Conversation</source>
        <translation>对话</translation>
    </message>
    <message>
        <source>Conversation and summaries</source>
        <translation>对话与摘要</translation>
    </message>
    <message>
        <source>Conversations</source>
        <translation>对话</translation>
    </message>
    <message>
        <source>Conversations in the cache</source>
        <translation>缓存中的对话</translation>
    </message>
    <message>
        <source>Conversations in the new cache: {n}.</source>
        <translation>新缓存中的对话：{n} 个。</translation>
    </message>
    <message>
        <source>Conversations in the new cache: {n}; without room: {left}.</source>
        <translation>新缓存中的对话：{n} 个；放不下的：{left} 个。</translation>
    </message>
    <message>
        <source>Conversations that are removed from the cache are saved there</source>
        <translation>从缓存移除的对话会保存在这里</translation>
    </message>
    <message>
        <source>Copied.</source>
        <translation>已复制。</translation>
    </message>
    <message>
        <source>Copies of the whole cache from before operations by hand; the oldest go first</source>
        <translation>手动操作之前整个缓存的副本；最早的最先删除</translation>
    </message>
    <message>
        <source>Copies the lines that are shown</source>
        <translation>复制当前显示的行</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>复制</translation>
    </message>
    <message>
        <source>Copy all</source>
        <translation>全部复制</translation>
    </message>
    <message>
        <source>Copy as Markdown</source>
        <translation>复制为 Markdown</translation>
    </message>
    <message>
        <source>Copy as plain text</source>
        <translation>复制为纯文本</translation>
    </message>
    <message>
        <source>Copy the API key</source>
        <translation>复制 API 密钥</translation>
    </message>
    <message>
        <source>Copy the address</source>
        <translation>复制地址</translation>
    </message>
    <message>
        <source>Copy the command for a terminal</source>
        <translation>复制终端命令</translation>
    </message>
    <message>
        <source>Copy the message</source>
        <translation>复制消息</translation>
    </message>
    <message>
        <source>Copy the selection</source>
        <translation>复制所选内容</translation>
    </message>
    <message>
        <source>Copy the versions</source>
        <translation>复制版本信息</translation>
    </message>
    <message>
        <source>Copy this answer</source>
        <translation>复制这个回答</translation>
    </message>
    <message>
        <source>Copy this code</source>
        <translation>复制这段代码</translation>
    </message>
    <message>
        <source>Cost of each way</source>
        <translation>各种方式的代价</translation>
    </message>
    <message>
        <source>Cost of moving cells</source>
        <translation>移动单元的代价</translation>
    </message>
    <message>
        <source>Counting the tokens …</source>
        <translation>正在统计 token 数…</translation>
    </message>
    <message>
        <source>Creative</source>
        <translation>有创意</translation>
    </message>
    <message>
        <source>Ctrl and click selects a second one to compare.</source>
        <translation>按住 Ctrl 单击可选择第二个进行比较。</translation>
    </message>
    <message>
        <source>Ctrl and the wheel zoom, a drag moves the time axis; keys: Left, Right, Ctrl+Left, Ctrl+Right, +, -, End</source>
        <translation>Ctrl 加滚轮缩放，拖动移动时间轴；按键：Left、Right、Ctrl+Left、Ctrl+Right、+、-、End</translation>
    </message>
    <message>
        <source>Cut into calls by n_batch {n_batch} it takes {calls_over} times as long as in one call, with n_ubatch {n_ubatch} in both.</source>
        <translation>按 n_batch {n_batch} 分成多次调用时，用时是一次调用的 {calls_over} 倍，两者的 n_ubatch 都是 {n_ubatch}。</translation>
    </message>
    <message>
        <source>DRY</source>
        <translation>DRY</translation>
    </message>
    <message>
        <source>DRY allowed length</source>
        <translation>DRY 允许长度</translation>
    </message>
    <message>
        <source>DRY base</source>
        <translation>DRY 底数</translation>
    </message>
    <message>
        <source>DRY multiplier</source>
        <translation>DRY 乘数</translation>
    </message>
    <message>
        <source>DRY sequence breakers</source>
        <translation>DRY 序列断点</translation>
    </message>
    <message>
        <source>DRY window</source>
        <translation>DRY 窗口</translation>
    </message>
    <message>
        <source>DRY: no repeated sequences</source>
        <translation>DRY：避免重复的序列</translation>
    </message>
    <message>
        <source>Dark</source>
        <translation>深色</translation>
    </message>
    <message>
        <source>Data type of K</source>
        <translation>K 的数据类型</translation>
    </message>
    <message>
        <source>Data type of V; quantized types need flash attention</source>
        <translation>V 的数据类型；量化类型需要 flash attention</translation>
    </message>
    <message>
        <source>Data type of most of its weights</source>
        <translation>其大部分权重的数据类型</translation>
    </message>
    <message>
        <source>Data types of K and V, and flash attention</source>
        <translation>K 和 V 的数据类型，以及 flash attention</translation>
    </message>
    <message>
        <source>Days</source>
        <translation>天数</translation>
    </message>
    <message>
        <source>Decode speed of the answers that are written now</source>
        <translation>正在生成的回答的解码速度</translation>
    </message>
    <message>
        <source>Decodes one token there: llama.cpp takes it only right after the sequence&apos;s last position</source>
        <translation>在那里解码一个 token：llama.cpp 只接受紧接在序列最后位置之后的</translation>
    </message>
    <message>
        <source>Decodes that rotated K first; each rotates the whole capacity</source>
        <translation>先旋转了 K 的 decode；每次都会旋转全部容量</translation>
    </message>
    <message>
        <source>Default</source>
        <translation>默认</translation>
    </message>
    <message>
        <source>Delete</source>
        <translation>删除</translation>
    </message>
    <message>
        <source>Delete question and answer</source>
        <translation>删除问题和回答</translation>
    </message>
    <message>
        <source>Delete the chat</source>
        <translation>删除对话</translation>
    </message>
    <message>
        <source>Delete the file</source>
        <translation>删除文件</translation>
    </message>
    <message>
        <source>Delete the selected results</source>
        <translation>删除选中的结果</translation>
    </message>
    <message>
        <source>Delete this message</source>
        <translation>删除这条消息</translation>
    </message>
    <message>
        <source>Delete {file} ({size}) from the disk? The application that downloaded it loses it too.</source>
        <translation>从磁盘删除 {file}（{size}）？下载它的应用程序也将无法再使用它。</translation>
    </message>
    <message>
        <source>Deleted: “{title}”</source>
        <translation>已删除：“{title}”</translation>
    </message>
    <message>
        <source>Deleted: “{title}” and %n more</source>
        <translation>已删除：“{title}”及另外 %n 个</translation>
    </message>
    <message>
        <source>Delete…</source>
        <translation>删除…</translation>
    </message>
    <message>
        <source>Depth</source>
        <translation>深度</translation>
    </message>
    <message>
        <source>Details</source>
        <translation>详细信息</translation>
    </message>
    <message>
        <source>Did you mean `kvdesk {near}`?</source>
        <translation>是否要用 `kvdesk {near}`？</translation>
    </message>
    <message>
        <source>Did you mean {near}?</source>
        <translation>是否要用 {near}？</translation>
    </message>
    <message>
        <source>Difficult questions and code, with 16 GB of memory</source>
        <translation>难题和代码，需要 16 GB 内存</translation>
    </message>
    <message>
        <source>Disk space for saved conversations (MB)</source>
        <translation>保存对话的磁盘空间 (MB)</translation>
    </message>
    <message>
        <source>Dismiss this comparison</source>
        <translation>关闭这个比较</translation>
    </message>
    <message>
        <source>Dismiss this message</source>
        <translation>关闭这条提示</translation>
    </message>
    <message>
        <source>Dismiss this refused batch</source>
        <translation>关闭这个被拒绝的批次</translation>
    </message>
    <message>
        <source>Does a scattered cache slow down, and does compaction help?</source>
        <translation>分散的缓存会变慢吗？整理有帮助吗？</translation>
    </message>
    <message>
        <source>Does it get slower, larger or more scattered when it is used for hours?</source>
        <translation>使用数小时之后，它会变慢、变大或更分散吗？</translation>
    </message>
    <message>
        <source>Does llama_memory_seq_rm free memory, or does it only mark cells as unused?</source>
        <translation>llama_memory_seq_rm 会释放内存，还是只把单元标记为未使用？</translation>
    </message>
    <message>
        <source>Does rebuilding the context now and then make requests fast again, and what does it cost?</source>
        <translation>不时重建上下文能让请求重新变快吗？代价是什么？</translation>
    </message>
    <message>
        <source>Done</source>
        <translation>完成</translation>
    </message>
    <message>
        <source>Download</source>
        <translation>下载</translation>
    </message>
    <message>
        <source>Downloads</source>
        <translation>下载</translation>
    </message>
    <message>
        <source>Draft</source>
        <translation>草稿</translation>
    </message>
    <message>
        <source>Draft and attachments are estimated until you pause</source>
        <translation>停止输入之前，草稿和附件的占用只是估计值</translation>
    </message>
    <message>
        <source>Drawing (SVG)…</source>
        <translation>矢量图 (SVG)…</translation>
    </message>
    <message>
        <source>Drop a .gguf file anywhere on this window, or open one.</source>
        <translation>将 .gguf 文件拖到这个窗口的任意位置，或打开一个。</translation>
    </message>
    <message>
        <source>Dynamic temperature exponent</source>
        <translation>动态温度指数</translation>
    </message>
    <message>
        <source>Dynamic temperature range</source>
        <translation>动态温度范围</translation>
    </message>
    <message>
        <source>Each answer becomes a branch; the question is prefilled only once</source>
        <translation>每个回答成为一个分支；问题只预填充一次</translation>
    </message>
    <message>
        <source>Each answer shows how many tokens came from the cache, how many were computed, and how fast. Hover it for more.</source>
        <translation>每个回答都会显示有多少 token 来自缓存、多少是计算的，以及速度。将鼠标移到上面可查看更多。</translation>
    </message>
    <message>
        <source>Each answer tells how much of its prompt came from the cache; the cells are not shown.</source>
        <translation>每个回答会说明其提示词有多少来自缓存；不显示单元。</translation>
    </message>
    <message>
        <source>Each conversation gets n_ctx / n_seq_max cells of its own; none can be shared.</source>
        <translation>每个对话有自己的 n_ctx / n_seq_max 个单元；不能共享。</translation>
    </message>
    <message>
        <source>Each conversation in the cache gets a ruler of its positions.</source>
        <translation>缓存中的每个对话都有一条显示其位置的标尺。</translation>
    </message>
    <message>
        <source>Each conversation is prefilled at its next turn</source>
        <translation>每个对话在其下一轮预填充</translation>
    </message>
    <message>
        <source>Each holds one token that the model need not read again (llama.cpp&apos;s `used`)</source>
        <translation>每个单元保存一个模型无需再次读取的 token（llama.cpp 的 `used`）</translation>
    </message>
    <message>
        <source>Each shift takes quantized K apart and rounds it again: a little is lost every time.</source>
        <translation>每次移动都会把量化的 K 解开再舍入：每次都会损失一点。</translation>
    </message>
    <message>
        <source>Each square is a cell of the KV cache: one token, in the colour of its chat. Grey cells are free.</source>
        <translation>每个方块是 KV 缓存的一个单元：一个 token，颜色表示所属的对话。灰色的单元是空闲的。</translation>
    </message>
    <message>
        <source>Each suspect alone, and together (slope in requests of the right way)</source>
        <translation>各个嫌疑单独及合在一起的结果（斜率以正确方式的请求为单位）</translation>
    </message>
    <message>
        <source>Each with other chats</source>
        <translation>每天使用不同的对话</translation>
    </message>
    <message>
        <source>Each with other chats, once with every policy</source>
        <translation>每天使用不同的对话，每种策略各一次</translation>
    </message>
    <message>
        <source>Edit it here, and have that answered in a new branch; this one stays</source>
        <translation>就地编辑，并在新分支中得到回答；当前这条保留</translation>
    </message>
    <message>
        <source>Edit the answer…</source>
        <translation>编辑回答…</translation>
    </message>
    <message>
        <source>Edit the last question</source>
        <translation>编辑最后一个问题</translation>
    </message>
    <message>
        <source>Edit this message</source>
        <translation>编辑这条消息</translation>
    </message>
    <message>
        <source>Edit this queued message</source>
        <translation>编辑这条排队的消息</translation>
    </message>
    <message>
        <source>Edited by you</source>
        <translation>由你编辑</translation>
    </message>
    <message>
        <source>Edit…</source>
        <translation>编辑…</translation>
    </message>
    <message>
        <source>Eight prompts at once</source>
        <translation>同时到来的八段提示词</translation>
    </message>
    <message>
        <source>Else its answers are sampled as the settings say.</source>
        <translation>否则其回答按设置采样。</translation>
    </message>
    <message>
        <source>Encoding of {name}</source>
        <translation>{name} 的编码</translation>
    </message>
    <message>
        <source>End the experiment&apos;s process at once; its samples are lost</source>
        <translation>立即结束实验的进程；其样本会丢失</translation>
    </message>
    <message>
        <source>Ended</source>
        <translation>已结束</translation>
    </message>
    <message>
        <source>Ended at the limit of {n} tokens.</source>
        <translation>已达到 {n} 个 token 的上限。</translation>
    </message>
    <message>
        <source>Engine</source>
        <translation>引擎</translation>
    </message>
    <message>
        <source>Enter queues it  ·  Esc stops the answer</source>
        <translation>Enter 加入队列  ·  Esc 停止回答</translation>
    </message>
    <message>
        <source>Enter sends  ·  Shift+Enter starts a new line</source>
        <translation>Enter 发送  ·  Shift+Enter 换行</translation>
    </message>
    <message>
        <source>Equal requests become slower where the tokens of earlier requests are kept and all are sent again at each step: the last takes {record} times the first, all mistakes together {together}, in the story {story:.1f}. Nothing else does it with one thread: the most is {most} times ({name}).</source>
        <translation>如果保留之前请求的 token 并在每一步全部重新发送，相同的请求就会变慢：最后一个的用时是第一个的 {record} 倍，所有错误合在一起为 {together} 倍，故事中为 {story:.1f} 倍。单线程下没有其他原因会这样：最多为 {most} 倍（{name}）。</translation>
    </message>
    <message>
        <source>Error: {sentence}</source>
        <translation>错误：{sentence}</translation>
    </message>
    <message>
        <source>Errors</source>
        <translation>错误</translation>
    </message>
    <message>
        <source>Esc stops the answer</source>
        <translation>Esc 停止回答</translation>
    </message>
    <message>
        <source>Events came faster than they were read: the chats are complete, some measurements are missing.</source>
        <translation>事件来得比读取快：对话是完整的，但缺少部分测量值。</translation>
    </message>
    <message>
        <source>Every cell would stay where it is: nothing would be moved.</source>
        <translation>每个单元都会留在原处：没有需要移动的内容。</translation>
    </message>
    <message>
        <source>Every conversation has a stream of its own, so the others are not removed.</source>
        <translation>每个对话有自己的 stream，因此不会移除其他对话。</translation>
    </message>
    <message>
        <source>Every graph</source>
        <translation>所有图表</translation>
    </message>
    <message>
        <source>Every number of threads was tried in turn within each round: {steps}.</source>
        <translation>每一轮中依次尝试了各个线程数：{steps}。</translation>
    </message>
    <message>
        <source>Every operation on the cache will be listed here, with its call and duration.</source>
        <translation>对缓存的每次操作都会列在这里，包括其调用和用时。</translation>
    </message>
    <message>
        <source>Every operation since the context was made, without the tokens.</source>
        <translation>上下文创建以来的每一次操作，不含 token。</translation>
    </message>
    <message>
        <source>Every series (CSV)…</source>
        <translation>所有曲线 (CSV)…</translation>
    </message>
    <message>
        <source>Everyday questions in many languages; can reason</source>
        <translation>多种语言的日常问题；支持推理</translation>
    </message>
    <message>
        <source>Everything in the cache was reused: {counts}</source>
        <translation>缓存中的全部内容都已复用：{counts}</translation>
    </message>
    <message>
        <source>Everything stays as it is</source>
        <translation>一切保持原样</translation>
    </message>
    <message>
        <source>Exact answers</source>
        <translation>精确回答</translation>
    </message>
    <message>
        <source>Exact answers need K and V of graphs of {n} tokens: they must be computed again.</source>
        <translation>精确回答需要按 {n} 个 token 的计算图得到的 K 和 V：必须重新计算。</translation>
    </message>
    <message>
        <source>Exact answers reuse only whole blocks of {block} tokens of a prompt, and read answers again: {counts}</source>
        <translation>精确回答只复用提示词中每 {block} 个 token 的完整块，并重新读取回答：{counts}</translation>
    </message>
    <message>
        <source>Expected: a token reads {size} of weights, and this machine reads {speed} GB/s of them.</source>
        <translation>预计值：每个 token 要读取 {size} 权重，这台电脑读取权重的速度为 {speed} GB/s。</translation>
    </message>
    <message>
        <source>Experiments that answer questions about the KV cache, each in a process of its own, with a report.</source>
        <translation>回答 KV 缓存问题的实验，每个实验在单独的进程中运行并给出报告。</translation>
    </message>
    <message>
        <source>Explain a piece of code</source>
        <translation>解释一段代码</translation>
    </message>
    <message>
        <source>Export</source>
        <translation>导出</translation>
    </message>
    <message>
        <source>Export all chats…</source>
        <translation>导出所有对话…</translation>
    </message>
    <message>
        <source>Export the chat</source>
        <translation>导出对话</translation>
    </message>
    <message>
        <source>Export the chats in it…</source>
        <translation>导出其中的对话…</translation>
    </message>
    <message>
        <source>Export the chat…</source>
        <translation>导出对话…</translation>
    </message>
    <message>
        <source>Export the graphs</source>
        <translation>导出图表</translation>
    </message>
    <message>
        <source>Export the journal</source>
        <translation>导出操作记录</translation>
    </message>
    <message>
        <source>Export the preset</source>
        <translation>导出预设</translation>
    </message>
    <message>
        <source>Export {n} chats</source>
        <translation>导出 {n} 个对话</translation>
    </message>
    <message>
        <source>Exported from kvdesk on {day}</source>
        <translation>从 kvdesk 导出，{day}</translation>
    </message>
    <message>
        <source>Export…</source>
        <translation>导出…</translation>
    </message>
    <message>
        <source>Failed</source>
        <translation>失败</translation>
    </message>
    <message>
        <source>Far position</source>
        <translation>远处的位置</translation>
    </message>
    <message>
        <source>Fast answers in many languages, Chinese too; can reason</source>
        <translation>多种语言的快速回答，包括中文；支持推理</translation>
    </message>
    <message>
        <source>Fast, least exact: even this answer&apos;s beginning may be removed. The first tokens and the latest messages stay.</source>
        <translation>快速，最不精确：连这个回答的开头也可能被移除。最前面的 token 和最新的消息保留。</translation>
    </message>
    <message>
        <source>Fast, nearly exact: the oldest messages are removed. What was computed from them for later messages is kept, so answers differ a little from those of a shorter conversation.</source>
        <translation>快速，接近精确：移除最早的消息。由它们为后面的消息计算出的内容保留，因此回答与较短的对话略有不同。</translation>
    </message>
    <message>
        <source>Favourite</source>
        <translation>收藏</translation>
    </message>
    <message>
        <source>Fewer threads while other programs are busy. This changes the order in which numbers are added: in long conversations answers may then differ by rounding</source>
        <translation>其他程序繁忙时使用较少的线程。这会改变数值相加的顺序：在长对话中，回答可能因舍入而不同</translation>
    </message>
    <message>
        <source>Figures</source>
        <translation>数值</translation>
    </message>
    <message>
        <source>Figures of both</source>
        <translation>两者的数值</translation>
    </message>
    <message>
        <source>Filter</source>
        <translation>筛选</translation>
    </message>
    <message>
        <source>Filter models</source>
        <translation>筛选模型</translation>
    </message>
    <message>
        <source>Filter the log</source>
        <translation>筛选日志</translation>
    </message>
    <message>
        <source>Find a shortcut</source>
        <translation>查找快捷键</translation>
    </message>
    <message>
        <source>Find an action</source>
        <translation>查找操作</translation>
    </message>
    <message>
        <source>Find in this chat</source>
        <translation>在这个对话中查找</translation>
    </message>
    <message>
        <source>First cell</source>
        <translation>第一个单元</translation>
    </message>
    <message>
        <source>First position</source>
        <translation>第一个位置</translation>
    </message>
    <message>
        <source>First token after</source>
        <translation>首个 token 用时</translation>
    </message>
    <message>
        <source>First token after {seconds}: {parts}</source>
        <translation>首个 token 用时 {seconds}：{parts}</translation>
    </message>
    <message>
        <source>Fit</source>
        <translation>适应窗口</translation>
    </message>
    <message>
        <source>Fits here</source>
        <translation>能否运行</translation>
    </message>
    <message>
        <source>Flash attention</source>
        <translation>Flash attention</translation>
    </message>
    <message>
        <source>Flash attention is {flash}. The policies took turns on each day, question by question.</source>
        <translation>flash attention {flash}。各策略在每一天里逐个问题轮流进行。</translation>
    </message>
    <message>
        <source>Fold {name}</source>
        <translation>折叠 {name}</translation>
    </message>
    <message>
        <source>Folder {name}, {state}, chats: %n</source>
        <translation>文件夹 {name}，{state}，对话数：%n</translation>
    </message>
    <message>
        <source>Follow</source>
        <translation>跟随</translation>
    </message>
    <message>
        <source>Follow the newest reading</source>
        <translation>跟随最新的读数</translation>
    </message>
    <message>
        <source>Follow the system</source>
        <translation>跟随系统</translation>
    </message>
    <message>
        <source>Font size</source>
        <translation>字号</translation>
    </message>
    <message>
        <source>For models with sliding-window attention: keeps the cells outside the window too</source>
        <translation>用于滑动窗口注意力的模型：窗口之外的单元也保留</translation>
    </message>
    <message>
        <source>For this computer: {name}</source>
        <translation>适合这台电脑：{name}</translation>
    </message>
    <message>
        <source>Forget cells</source>
        <translation>丢弃单元</translation>
    </message>
    <message>
        <source>Forget the token</source>
        <translation>删除 token</translation>
    </message>
    <message>
        <source>Forget this conversation&apos;s cells</source>
        <translation>丢弃这个对话的单元</translation>
    </message>
    <message>
        <source>Fork</source>
        <translation>分叉</translation>
    </message>
    <message>
        <source>Fork into a new chat</source>
        <translation>分叉为新对话</translation>
    </message>
    <message>
        <source>Fork the chat after it</source>
        <translation>从此处之后分叉对话</translation>
    </message>
    <message>
        <source>Forks</source>
        <translation>分叉</translation>
    </message>
    <message>
        <source>Format</source>
        <translation>格式</translation>
    </message>
    <message>
        <source>Found in</source>
        <translation>发现于</translation>
    </message>
    <message>
        <source>Fragmentation</source>
        <translation>碎片化</translation>
    </message>
    <message>
        <source>Free</source>
        <translation>空闲</translation>
    </message>
    <message>
        <source>Free cells before the last used one, in % of the cells up to there; attention reads them too</source>
        <translation>最后一个已用单元之前的空闲单元，占到该处为止单元的百分比；注意力也会读取它们</translation>
    </message>
    <message>
        <source>Frees the context and makes a new one; every conversation is computed again at its next message.</source>
        <translation>释放上下文并新建一个；每个对话在下一条消息时重新计算。</translation>
    </message>
    <message>
        <source>Frequency penalty</source>
        <translation>频率惩罚</translation>
    </message>
    <message>
        <source>Fresh ids for ever are not refused behind n_seq_max.</source>
        <translation>一直使用新 id 时，超出 n_seq_max 也没有被拒绝。</translation>
    </message>
    <message>
        <source>Fresh ids for ever are refused behind n_seq_max ({said}).</source>
        <translation>一直使用新 id 时，超出 n_seq_max 会被拒绝（{said}）。</translation>
    </message>
    <message>
        <source>From cache</source>
        <translation>来自缓存</translation>
    </message>
    <message>
        <source>From kvdesk&apos;s own JSON, or from ChatGPT, Open WebUI, LM Studio, Jan or llama.cpp&apos;s web UI</source>
        <translation>来自 kvdesk 自己的 JSON，或 ChatGPT、Open WebUI、LM Studio、Jan、llama.cpp 网页界面的文件</translation>
    </message>
    <message>
        <source>From the file&apos;s header and the settings, before the load</source>
        <translation>加载之前，根据文件头和设置得出</translation>
    </message>
    <message>
        <source>Full-size SWA cache</source>
        <translation>完整大小的 SWA 缓存</translation>
    </message>
    <message>
        <source>GB/s</source>
        <translation>GB/s</translation>
    </message>
    <message>
        <source>GGUF file to open; without one the model used last</source>
        <translation>要打开的 GGUF 文件；不指定时打开上次使用的模型</translation>
    </message>
    <message>
        <source>GGUF file; the embedded SmolLM2-135M by default</source>
        <translation>GGUF 文件；默认为内置的 SmolLM2-135M</translation>
    </message>
    <message>
        <source>GGUF models (*.gguf);;All files (*)</source>
        <translation>GGUF 模型 (*.gguf);;所有文件 (*)</translation>
    </message>
    <message>
        <source>Gaps between tokens of one answer, the latest; with several answers at once, from batch to batch</source>
        <translation>一个回答的 token 之间的最近间隔；同时有多个回答时，为批次之间的间隔</translation>
    </message>
    <message>
        <source>Gaps between two tokens</source>
        <translation>两个 token 之间的间隔</translation>
    </message>
    <message>
        <source>Gaps in between</source>
        <translation>其间的空缺</translation>
    </message>
    <message>
        <source>Get a better model…</source>
        <translation>获取更好的模型…</translation>
    </message>
    <message>
        <source>Get models</source>
        <translation>获取模型</translation>
    </message>
    <message>
        <source>Get models…</source>
        <translation>获取模型…</translation>
    </message>
    <message>
        <source>Go to the list</source>
        <translation>跳到列表</translation>
    </message>
    <message>
        <source>Go to the pinned message: {text}</source>
        <translation>跳到固定的消息：{text}</translation>
    </message>
    <message>
        <source>Good models to begin with</source>
        <translation>适合入门的好模型</translation>
    </message>
    <message>
        <source>Grammar</source>
        <translation>语法</translation>
    </message>
    <message>
        <source>Grammar, JSON schema, logit bias</source>
        <translation>语法、JSON schema、logit 偏置</translation>
    </message>
    <message>
        <source>Graphs</source>
        <translation>图表</translation>
    </message>
    <message>
        <source>Graphs over time</source>
        <translation>随时间变化的图表</translation>
    </message>
    <message>
        <source>Group by conversation</source>
        <translation>按对话分组</translation>
    </message>
    <message>
        <source>Group of layers: {n}</source>
        <translation>层的组：{n}</translation>
    </message>
    <message>
        <source>Grouped</source>
        <translation>合并显示</translation>
    </message>
    <message>
        <source>H, the high-water mark: index of the last non-empty cell + 1</source>
        <translation>H，高水位：最后一个非空单元的序号 + 1</translation>
    </message>
    <message>
        <source>H, the high-water mark: index of the last non-empty cell + 1 (`used_max_p1`)</source>
        <translation>H，高水位：最后一个非空单元的序号 + 1（`used_max_p1`）</translation>
    </message>
    <message>
        <source>H, the highest of all streams</source>
        <translation>H，所有 stream 中的最高值</translation>
    </message>
    <message>
        <source>H: index of the last non-empty cell + 1 (`used_max_p1`)</source>
        <translation>H：最后一个非空单元的序号 + 1（`used_max_p1`）</translation>
    </message>
    <message>
        <source>HTML, the branch that is shown (*.html)</source>
        <translation>HTML，当前显示的分支 (*.html)</translation>
    </message>
    <message>
        <source>Hello</source>
        <translation>你好</translation>
    </message>
    <message>
        <source>Help</source>
        <translation>帮助</translation>
    </message>
    <message>
        <source>Here you open another model, a GGUF file. Ctrl+, opens the settings.</source>
        <translation>在这里打开其他模型（GGUF 文件）。按 Ctrl+, 打开设置。</translation>
    </message>
    <message>
        <source>Hide the inspector</source>
        <translation>隐藏检查器</translation>
    </message>
    <message>
        <source>Hide the inspector (Ctrl+I)</source>
        <translation>隐藏检查器 (Ctrl+I)</translation>
    </message>
    <message>
        <source>Hide the parameters</source>
        <translation>隐藏参数</translation>
    </message>
    <message>
        <source>Hide the parameters (Ctrl+J)</source>
        <translation>隐藏参数 (Ctrl+J)</translation>
    </message>
    <message>
        <source>High water (H)</source>
        <translation>高水位 (H)</translation>
    </message>
    <message>
        <source>Higher is more varied; 0 always takes the most likely token (greedy)</source>
        <translation>越高越多样；0 总是选择最可能的 token（greedy）</translation>
    </message>
    <message>
        <source>History</source>
        <translation>历史</translation>
    </message>
    <message>
        <source>Hole ratio (H - U) / H, 0 when H is 0: free cells that attention still reads</source>
        <translation>空洞率 (H - U) / H，H 为 0 时为 0：注意力仍会读取的空闲单元</translation>
    </message>
    <message>
        <source>Hole ratio (H - U) / H: free cells below the high-water mark, which attention still reads</source>
        <translation>空洞率 (H - U) / H：高水位以下、注意力仍会读取的空闲单元</translation>
    </message>
    <message>
        <source>Hours of mixed use</source>
        <translation>数小时的混合使用</translation>
    </message>
    <message>
        <source>How far the next token changes</source>
        <translation>下一个 token 的变化程度</translation>
    </message>
    <message>
        <source>How fast Mirostat follows its target</source>
        <translation>Mirostat 接近目标的速度</translation>
    </message>
    <message>
        <source>How fast that penalty grows with the length of the repeated sequence</source>
        <translation>该惩罚随重复序列长度增长的速度</translation>
    </message>
    <message>
        <source>How it was measured</source>
        <translation>测量方法</translation>
    </message>
    <message>
        <source>How long adaptive P remembers: about 1 / (1 - decay) tokens</source>
        <translation>adaptive P 的记忆长度：约 1 / (1 - decay) 个 token</translation>
    </message>
    <message>
        <source>How long it is used</source>
        <translation>使用多长时间</translation>
    </message>
    <message>
        <source>How long reading them again takes is being estimated …</source>
        <translation>正在估算重新读取它们的用时…</translation>
    </message>
    <message>
        <source>How many of the last tokens are searched for repetitions; 0 switches DRY off</source>
        <translation>在最近多少个 token 中查找重复；0 关闭 DRY</translation>
    </message>
    <message>
        <source>How many of the last tokens the repeat, presence and frequency penalties look at; 0 switches them off</source>
        <translation>重复、存在和频率惩罚查看最近多少个 token；0 关闭它们</translation>
    </message>
    <message>
        <source>How many prompts go on from it: none, one, several</source>
        <translation>有多少提示词从其后继续：没有、一个、多个</translation>
    </message>
    <message>
        <source>How many requests of this window had it in their prompt: none to most</source>
        <translation>这个窗口有多少请求的提示词中有它：从没有到最多</translation>
    </message>
    <message>
        <source>How many threads are best, and what happens when something else computes too?</source>
        <translation>多少个线程最好？同时有其他计算时会怎样？</translation>
    </message>
    <message>
        <source>How many times the processor&apos;s cores are too many threads</source>
        <translation>处理器核心数的多少倍算线程太多</translation>
    </message>
    <message>
        <source>How much a token is to surprise, in bits; lower is more predictable</source>
        <translation>token 的意外程度，以 bit 计；越低越可预测</translation>
    </message>
    <message>
        <source>How often everything is looked at</source>
        <translation>全部检查的频率</translation>
    </message>
    <message>
        <source>How often everything is repeated</source>
        <translation>全部重复的次数</translation>
    </message>
    <message>
        <source>How often it is repeated</source>
        <translation>重复的次数</translation>
    </message>
    <message>
        <source>How often the most likely tokens are left out, so that answers are less predictable; 0 never</source>
        <translation>排除最可能的 token 的频率，使回答更难预测；0 表示从不</translation>
    </message>
    <message>
        <source>How often the text is read under each policy</source>
        <translation>每种策略下读取文本的次数</translation>
    </message>
    <message>
        <source>How should batches be cut and mixed, and does it pay to sort by length?</source>
        <translation>批次应如何切分和混合？按长度排序划算吗？</translation>
    </message>
    <message>
        <source>How the entropy of the next token becomes a dynamic temperature; 1 in proportion</source>
        <translation>下一个 token 的熵如何变为动态温度；1 表示成比例</translation>
    </message>
    <message>
        <source>How this model marks its reasoning could not be found: it is shown as a part of the answer.</source>
        <translation>无法判断这个模型如何标记思考过程：它会作为回答的一部分显示。</translation>
    </message>
    <message>
        <source>Idle, and it pays: {numbers}.</source>
        <translation>空闲，且值得：{numbers}。</translation>
    </message>
    <message>
        <source>If a cache makes requests slow, would they be faster without one?</source>
        <translation>如果缓存让请求变慢，不用缓存会更快吗？</translation>
    </message>
    <message>
        <source>Import</source>
        <translation>导入</translation>
    </message>
    <message>
        <source>Import a preset</source>
        <translation>导入预设</translation>
    </message>
    <message>
        <source>Import and export</source>
        <translation>导入与导出</translation>
    </message>
    <message>
        <source>Import chats</source>
        <translation>导入对话</translation>
    </message>
    <message>
        <source>Import chats…</source>
        <translation>导入对话…</translation>
    </message>
    <message>
        <source>Import once more what is here already, as copies</source>
        <translation>将这里已有的内容再导入一份副本</translation>
    </message>
    <message>
        <source>Import one chat</source>
        <translation>导入 1 个对话</translation>
    </message>
    <message>
        <source>Import {n} chats</source>
        <translation>导入 {n} 个对话</translation>
    </message>
    <message>
        <source>Import…</source>
        <translation>导入…</translation>
    </message>
    <message>
        <source>In one batch every answer gets the same: Jain&apos;s index is 1. {n} equal answers one after another, each to its end, would have {alone:.2f}, counted as tokens over the time until its end.</source>
        <translation>在一个批次中每个回答得到的相同：Jain 指数为 1。{n} 个相同的回答依次完成时为 {alone:.2f}，按 token 数与完成所需时间之比计算。</translation>
    </message>
    <message>
        <source>In the cache</source>
        <translation>在缓存中</translation>
    </message>
    <message>
        <source>In the cell map</source>
        <translation>在单元图中</translation>
    </message>
    <message>
        <source>In the graphs</source>
        <translation>在图表中</translation>
    </message>
    <message>
        <source>In the list of chats</source>
        <translation>在对话列表中</translation>
    </message>
    <message>
        <source>In the message box</source>
        <translation>在消息输入框中</translation>
    </message>
    <message>
        <source>In {minutes:.2g} minutes it cannot be told whether it becomes {words}.</source>
        <translation>{minutes:.2g} 分钟内无法判断是否会{words}。</translation>
    </message>
    <message>
        <source>In {n} requests of this window</source>
        <translation>在这个窗口的 {n} 个请求中</translation>
    </message>
    <message>
        <source>Info</source>
        <translation>信息</translation>
    </message>
    <message>
        <source>Install with this system&apos;s package manager; Debian&apos;s packages: {packages}</source>
        <translation>请用系统的软件包管理器安装；对应的 Debian 软件包：{packages}</translation>
    </message>
    <message>
        <source>Install with: sudo apt install {packages}</source>
        <translation>安装命令：sudo apt install {packages}</translation>
    </message>
    <message>
        <source>Inter-token latency</source>
        <translation>token 间延迟</translation>
    </message>
    <message>
        <source>Interrupted</source>
        <translation>已中断</translation>
    </message>
    <message>
        <source>Is 2 · layers · hidden size · cells · bytes the memory a KV cache takes?</source>
        <translation>2 · 层数 · 隐藏维度 · 单元数 · 字节数，就是 KV 缓存占用的内存吗？</translation>
    </message>
    <message>
        <source>Is a smaller n_ctx faster, and what do n_batch and n_ubatch change?</source>
        <translation>n_ctx 越小越快吗？n_batch 和 n_ubatch 有什么影响？</translation>
    </message>
    <message>
        <source>It always holds</source>
        <translation>始终包含</translation>
    </message>
    <message>
        <source>It answers chats; what its cache does is not shown.</source>
        <translation>它可以回答对话；不显示其缓存的情况。</translation>
    </message>
    <message>
        <source>It answers questions about the cache by experiments. Ctrl+Shift+P finds everything else, this tour too; F1 shows all keys.</source>
        <translation>它用实验回答关于缓存的问题。按 Ctrl+Shift+P 可以找到其他所有功能，包括这个导览；按 F1 显示所有快捷键。</translation>
    </message>
    <message>
        <source>It asks to wait for {n} seconds.</source>
        <translation>它要求等待 {n} 秒。</translation>
    </message>
    <message>
        <source>It can be saved when the answer has ended</source>
        <translation>回答结束后可以保存</translation>
    </message>
    <message>
        <source>It can be saved when the model is ready</source>
        <translation>模型就绪后可以保存</translation>
    </message>
    <message>
        <source>It changes nothing: a recurrent memory has one state per conversation anyway.</source>
        <translation>没有影响：循环记忆中每个对话本来就只有一个状态。</translation>
    </message>
    <message>
        <source>It could not be moved to the trash: {folder}</source>
        <translation>无法移到回收站：{folder}</translation>
    </message>
    <message>
        <source>It could not be saved: {why}.</source>
        <translation>无法保存：{why}。</translation>
    </message>
    <message>
        <source>It does not pay now: {numbers}.</source>
        <translation>现在不值得：{numbers}。</translation>
    </message>
    <message>
        <source>It does not pay: {numbers}.</source>
        <translation>不值得：{numbers}。</translation>
    </message>
    <message>
        <source>It does not show its cells to this key. Start it with --inspect-key and connect with that key.</source>
        <translation>它不向此密钥显示单元。请用 --inspect-key 启动它，并用该密钥连接。</translation>
    </message>
    <message>
        <source>It goes on in a version beside it, on a branch of its own; what follows it here stays</source>
        <translation>它在旁边的一个版本中继续，位于单独的分支；这里后面的内容保留</translation>
    </message>
    <message>
        <source>It has cell {first} of the map.</source>
        <translation>它占用图中的单元 {first}。</translation>
    </message>
    <message>
        <source>It has happened {n} times within a minute: restart kvdesk. Your chats are saved.</source>
        <translation>这在一分钟内发生了 {n} 次：请重新启动 kvdesk。你的对话已保存。</translation>
    </message>
    <message>
        <source>It has {n} cells of the map, {first} to {last}.</source>
        <translation>它占用图中的 {n} 个单元：{first} 到 {last}。</translation>
    </message>
    <message>
        <source>It holds no cells.</source>
        <translation>它没有占用单元。</translation>
    </message>
    <message>
        <source>It is being started again: your chats go on, and answers keep the text they had.</source>
        <translation>正在重新启动：你的对话可以继续，回答保留已有的文本。</translation>
    </message>
    <message>
        <source>It is not installed</source>
        <translation>没有安装</translation>
    </message>
    <message>
        <source>It is not swapped out.</source>
        <translation>它没有被换出。</translation>
    </message>
    <message>
        <source>It is swapped out: swap it in first.</source>
        <translation>它已被换出：请先换入。</translation>
    </message>
    <message>
        <source>It needs {needed}, and {free} are free.</source>
        <translation>需要 {needed}，空闲 {free}。</translation>
    </message>
    <message>
        <source>It only marks cells as unused, so that memory is left behind and slows later requests down.</source>
        <translation>它只把单元标记为未使用，内存因此残留，使之后的请求变慢。</translation>
    </message>
    <message>
        <source>It shows its cells to a key only. Start it with --inspect-key and connect with that key.</source>
        <translation>它只向持有密钥者显示单元。请用 --inspect-key 启动它，并用该密钥连接。</translation>
    </message>
    <message>
        <source>It takes about {seconds:.0f} s at the speed measured just now.</source>
        <translation>按刚才测得的速度约需 {seconds:.0f} 秒。</translation>
    </message>
    <message>
        <source>Its cache is not shown: {why}</source>
        <translation>不显示其缓存：{why}</translation>
    </message>
    <message>
        <source>Its cells had been removed ({evicted}): {counts}</source>
        <translation>其单元已被移除（{evicted}）：{counts}</translation>
    </message>
    <message>
        <source>Its cells were changed by hand.</source>
        <translation>其单元被手动更改。</translation>
    </message>
    <message>
        <source>Its cells were needed for an answer: verify it when that has ended.</source>
        <translation>它的单元被一个回答占用：请在该回答结束后再验证。</translation>
    </message>
    <message>
        <source>Its cells were removed.</source>
        <translation>其单元已被移除。</translation>
    </message>
    <message>
        <source>Its chats stay, in no folder</source>
        <translation>其中的对话会保留，不再属于任何文件夹</translation>
    </message>
    <message>
        <source>Its counters are off; llama-server --metrics switches them on.</source>
        <translation>其计数器已关闭；用 llama-server --metrics 开启。</translation>
    </message>
    <message>
        <source>Its own, made by a seed</source>
        <translation>自行生成，由种子决定</translation>
    </message>
    <message>
        <source>Its place in the cache is known after the next answer in this chat.</source>
        <translation>这个对话得到下一个回答后，才能知道它在缓存中的位置。</translation>
    </message>
    <message>
        <source>Its state is larger than what may be kept outside the cache: raise the limit in settings.</source>
        <translation>其状态超过缓存之外可保存的上限：请在设置中提高限制。</translation>
    </message>
    <message>
        <source>JSON (*.json)</source>
        <translation>JSON (*.json)</translation>
    </message>
    <message>
        <source>JSON lines (*.jsonl)</source>
        <translation>JSON 行 (*.jsonl)</translation>
    </message>
    <message>
        <source>JSON schema</source>
        <translation>JSON schema</translation>
    </message>
    <message>
        <source>JSON, with everything (*.json)</source>
        <translation>JSON，包含全部内容 (*.json)</translation>
    </message>
    <message>
        <source>Jain&apos;s index</source>
        <translation>Jain 指数</translation>
    </message>
    <message>
        <source>Journal before the rebuild</source>
        <translation>重建之前的操作记录</translation>
    </message>
    <message>
        <source>Journal of the cache</source>
        <translation>缓存的操作记录</translation>
    </message>
    <message>
        <source>Journal of this context</source>
        <translation>这个上下文的操作记录</translation>
    </message>
    <message>
        <source>K and V</source>
        <translation>K 和 V</translation>
    </message>
    <message>
        <source>K and V MB</source>
        <translation>K 和 V（MB）</translation>
    </message>
    <message>
        <source>K and V are stored as bytes of their types: with other types they must be computed again.</source>
        <translation>K 和 V 按其类型的字节存储：使用其他类型时必须重新计算。</translation>
    </message>
    <message>
        <source>K and V come back exactly, but in other cells; {rounding}</source>
        <translation>K 和 V 精确恢复，但位于其他单元；{rounding}</translation>
    </message>
    <message>
        <source>K and V of the context</source>
        <translation>上下文的 K 和 V</translation>
    </message>
    <message>
        <source>K and V of the filled cells</source>
        <translation>已填充单元的 K 和 V</translation>
    </message>
    <message>
        <source>K cache type</source>
        <translation>K 缓存类型</translation>
    </message>
    <message>
        <source>K does not depend on the position, so nothing has to be rotated.</source>
        <translation>K 与位置无关，因此无需旋转。</translation>
    </message>
    <message>
        <source>K heads are not a multiple of 32 numbers, which flash attention needs for quantized K.</source>
        <translation>K 的 head 大小不是 32 的倍数，而 flash attention 的量化 K 要求如此。</translation>
    </message>
    <message>
        <source>K heads are not a multiple of 64 numbers: with quantized K llama.cpp would crash.</source>
        <translation>K 的 head 大小不是 64 的倍数：使用量化 K 时 llama.cpp 会崩溃。</translation>
    </message>
    <message>
        <source>K is bf16, which llama.cpp cannot rotate on a CPU: it would abort.</source>
        <translation>K 为 bf16，llama.cpp 无法在 CPU 上旋转它：会中止。</translation>
    </message>
    <message>
        <source>K is rotated to the new positions at the next decode; shared cells move for all conversations.</source>
        <translation>K 会在下一次 decode 时旋转到新的位置；共享的单元会随所有对话一起移动。</translation>
    </message>
    <message>
        <source>K-shift flushes</source>
        <translation>K-shift 次数</translation>
    </message>
    <message>
        <source>K-shift pending</source>
        <translation>等待 K-shift</translation>
    </message>
    <message>
        <source>KL (nats)</source>
        <translation>KL（nat）</translation>
    </message>
    <message>
        <source>KL divergence</source>
        <translation>KL 散度</translation>
    </message>
    <message>
        <source>KL {kl_max} nats, logits differ by at most {max_difference}</source>
        <translation>KL {kl_max} nat，logits 最多相差 {max_difference}</translation>
    </message>
    <message>
        <source>KL, nats</source>
        <translation>KL（nat）</translation>
    </message>
    <message>
        <source>KV cache</source>
        <translation>KV 缓存</translation>
    </message>
    <message>
        <source>KV {used} of {all} MB</source>
        <translation>KV {used} / {all} MB</translation>
    </message>
    <message>
        <source>Keep</source>
        <translation>保留</translation>
    </message>
    <message>
        <source>Keep it</source>
        <translation>保留</translation>
    </message>
    <message>
        <source>Keep kvdesk open</source>
        <translation>不关闭 kvdesk</translation>
    </message>
    <message>
        <source>Keep only</source>
        <translation>仅保留</translation>
    </message>
    <message>
        <source>Keep only its cells</source>
        <translation>仅保留其单元</translation>
    </message>
    <message>
        <source>Keep order</source>
        <translation>保持顺序</translation>
    </message>
    <message>
        <source>Keep the newest reading in sight (End)</source>
        <translation>使最新读数保持可见 (End)</translation>
    </message>
    <message>
        <source>Keep their states</source>
        <translation>保留其状态</translation>
    </message>
    <message>
        <source>Keep this one</source>
        <translation>保留这个</translation>
    </message>
    <message>
        <source>Keep this one: {name}</source>
        <translation>保留这个：{name}</translation>
    </message>
    <message>
        <source>Keep what fits</source>
        <translation>保留放得下的部分</translation>
    </message>
    <message>
        <source>Keeping only the latest tokens bounds the cache and makes free space easy to use again.</source>
        <translation>只保留最近的 token 可以限制缓存，并使空闲空间易于再次使用。</translation>
    </message>
    <message>
        <source>Keeps the first part of what is attached, as much as fits beside the text and an answer</source>
        <translation>保留附件开头的部分，长度以文本和回答之外的剩余空间为限</translation>
    </message>
    <message>
        <source>Kept for programs: {kept}.</source>
        <translation>为程序保留：{kept}。</translation>
    </message>
    <message>
        <source>Key</source>
        <translation>密钥</translation>
    </message>
    <message>
        <source>Keys of all layers</source>
        <translation>所有层的 Key</translation>
    </message>
    <message>
        <source>Known servers</source>
        <translation>已知的服务器</translation>
    </message>
    <message>
        <source>Known since message {n:,}; {heard:,} messages heard.</source>
        <translation>自消息 {n:,} 起已知；收到 {heard:,} 条消息。</translation>
    </message>
    <message>
        <source>Lab</source>
        <translation>实验室</translation>
    </message>
    <message>
        <source>Lab: questions about the cache, answered by experiments (Ctrl+Shift+L)</source>
        <translation>实验室：用实验回答关于缓存的问题 (Ctrl+Shift+L)</translation>
    </message>
    <message>
        <source>Lab: {sentence}</source>
        <translation>实验室：{sentence}</translation>
    </message>
    <message>
        <source>Language</source>
        <translation>语言</translation>
    </message>
    <message>
        <source>Larger context…</source>
        <translation>更大的上下文…</translation>
    </message>
    <message>
        <source>Larger text</source>
        <translation>更大的文字</translation>
    </message>
    <message>
        <source>Largest context</source>
        <translation>最大的上下文</translation>
    </message>
    <message>
        <source>Last cell</source>
        <translation>最后一个单元</translation>
    </message>
    <message>
        <source>Last used</source>
        <translation>上次使用</translation>
    </message>
    <message>
        <source>Least level</source>
        <translation>最低级别</translation>
    </message>
    <message>
        <source>Leave</source>
        <translation>退出</translation>
    </message>
    <message>
        <source>Leave it as it was (Esc)</source>
        <translation>保持原样 (Esc)</translation>
    </message>
    <message>
        <source>Leave out tokens less likely than this share of the most likely one; 0 leaves out none</source>
        <translation>排除可能性低于最可能 token 的这个比例的 token；0 表示不排除</translation>
    </message>
    <message>
        <source>Leave out tokens whose logit is more than n standard deviations below the highest; 0 or less leaves out none</source>
        <translation>排除 logit 比最高值低 n 个标准差以上的 token；0 或更小表示不排除</translation>
    </message>
    <message>
        <source>Leave the tour (Esc)</source>
        <translation>退出导览 (Esc)</translation>
    </message>
    <message>
        <source>Leave what is open, stop the answer, or dismiss the newest notice</source>
        <translation>离开打开的内容、停止回答，或关闭最新的通知</translation>
    </message>
    <message>
        <source>Left out</source>
        <translation>未包含</translation>
    </message>
    <message>
        <source>Legend of the cell map</source>
        <translation>单元图的图例</translation>
    </message>
    <message>
        <source>Length limit reached</source>
        <translation>达到长度上限</translation>
    </message>
    <message>
        <source>Licence</source>
        <translation>许可证</translation>
    </message>
    <message>
        <source>Licence texts</source>
        <translation>许可证文本</translation>
    </message>
    <message>
        <source>Licences</source>
        <translation>许可证</translation>
    </message>
    <message>
        <source>Light</source>
        <translation>浅色</translation>
    </message>
    <message>
        <source>Light, dark, or that of the system</source>
        <translation>浅色、深色或跟随系统</translation>
    </message>
    <message>
        <source>Line {line} of the grammar cannot be read: {what}.</source>
        <translation>无法读取语法的第 {line} 行：{what}。</translation>
    </message>
    <message>
        <source>Line {line} of the logit bias is not a token id, or a text in quotes, and a number.</source>
        <translation>logit 偏置的第 {line} 行应为一个 token id 或带引号的文本，再加一个数字。</translation>
    </message>
    <message>
        <source>Line {line} of the logit bias is out of range: -100 to 100.</source>
        <translation>logit 偏置的第 {line} 行超出范围：-100 到 100。</translation>
    </message>
    <message>
        <source>Loaded from saved states in the morning</source>
        <translation>早晨从保存的状态加载</translation>
    </message>
    <message>
        <source>Loading {name}  {share}</source>
        <translation>正在加载 {name}  {share}</translation>
    </message>
    <message>
        <source>Loading {name} did not finish last time, so it was not opened again. Open it by hand to try once more.</source>
        <translation>上次没有完成 {name} 的加载，因此没有再次打开它。如要重试，请手动打开。</translation>
    </message>
    <message>
        <source>Loading {name}. What you send waits for it.</source>
        <translation>正在加载 {name}。你发送的内容会等待它完成。</translation>
    </message>
    <message>
        <source>Log</source>
        <translation>日志</translation>
    </message>
    <message>
        <source>Log lines of llama.cpp and kvdesk appear here.</source>
        <translation>llama.cpp 和 kvdesk 的日志显示在这里。</translation>
    </message>
    <message>
        <source>Log-probability of a token of each code, nats</source>
        <translation>每个代码中一个 token 的对数概率，nat</translation>
    </message>
    <message>
        <source>Logit bias</source>
        <translation>Logit 偏置</translation>
    </message>
    <message>
        <source>Logits of one batch entry for every sequence</source>
        <translation>每个序列一个批次项的 logits</translation>
    </message>
    <message>
        <source>Logs of kvdesk and llama.cpp</source>
        <translation>llama.cpp 和 kvdesk 的日志</translation>
    </message>
    <message>
        <source>Long</source>
        <translation>详细</translation>
    </message>
    <message>
        <source>Long texts in European languages; can reason</source>
        <translation>欧洲语言的长文本；支持推理</translation>
    </message>
    <message>
        <source>Longest prompt</source>
        <translation>最长的提示词</translation>
    </message>
    <message>
        <source>Longest text</source>
        <translation>最长的文本</translation>
    </message>
    <message>
        <source>Look again</source>
        <translation>重新查找</translation>
    </message>
    <message>
        <source>Looking through the folders of other applications…</source>
        <translation>正在查找其他应用程序的文件夹…</translation>
    </message>
    <message>
        <source>Looks</source>
        <translation>检查次数</translation>
    </message>
    <message>
        <source>MB at most at a time</source>
        <translation>一次最多的 MB 数</translation>
    </message>
    <message>
        <source>MB moved</source>
        <translation>移动的 MB</translation>
    </message>
    <message>
        <source>MB of K and V</source>
        <translation>K 和 V（MB）</translation>
    </message>
    <message>
        <source>MB of the state</source>
        <translation>状态的 MB</translation>
    </message>
    <message>
        <source>Makes a new context; conversations are forgotten, prefilled again or carried over</source>
        <translation>新建上下文；对话会被丢弃、重新预填充或保留</translation>
    </message>
    <message>
        <source>Makes tokens more or less likely, one a line: a token id or a text in quotes, then what is added to its logit, such as 15043-1.5 or &quot; hello&quot;+2; -100 bans it</source>
        <translation>使 token 更可能或更不可能，每行一个：token id 或带引号的文本，再加上对其 logit 的增量，例如 15043-1.5 或 &quot; hello&quot;+2；-100 表示禁用</translation>
    </message>
    <message>
        <source>Map of the blocks</source>
        <translation>块的图</translation>
    </message>
    <message>
        <source>Map of the cache after a compaction</source>
        <translation>整理之后的缓存图</translation>
    </message>
    <message>
        <source>Map of the cache after the operation that is shown</source>
        <translation>所显示操作之后的缓存图</translation>
    </message>
    <message>
        <source>Map of the cache now</source>
        <translation>当前的缓存图</translation>
    </message>
    <message>
        <source>Map of the experiment&apos;s own cache</source>
        <translation>实验自身缓存的单元图</translation>
    </message>
    <message>
        <source>Markdown (*.md)</source>
        <translation>Markdown (*.md)</translation>
    </message>
    <message>
        <source>Markdown, the branch that is shown (*.md)</source>
        <translation>Markdown，当前显示的分支 (*.md)</translation>
    </message>
    <message>
        <source>Maximal intervals of empty cells</source>
        <translation>极大的连续空单元区间</translation>
    </message>
    <message>
        <source>Measured here, a token would take {share:.0%} of what it takes now.</source>
        <translation>按这里的测量，一个 token 的用时将是现在的 {share:.0%}。</translation>
    </message>
    <message>
        <source>Measured when it ran last.</source>
        <translation>上次运行时测得。</translation>
    </message>
    <message>
        <source>Measurements that are judged, each a ratio within one run. Run them on a quiet machine.</source>
        <translation>带判定标准的测量，每个结果都是同一次运行中的比值。请在空闲的电脑上运行。</translation>
    </message>
    <message>
        <source>Median of the rounds so far; lines from the lowest to the highest</source>
        <translation>目前各轮的中位数；线段从最低值到最高值</translation>
    </message>
    <message>
        <source>Medians</source>
        <translation>中位数</translation>
    </message>
    <message>
        <source>Medians and spread</source>
        <translation>中位数与离散程度</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>内存</translation>
    </message>
    <message>
        <source>Memory and seq_rm</source>
        <translation>内存与 seq_rm</translation>
    </message>
    <message>
        <source>Memory for saved conversations (MB)</source>
        <translation>保存对话的内存 (MB)</translation>
    </message>
    <message>
        <source>Memory of K and V: used, of what is allocated</source>
        <translation>K 和 V 的内存：已分配中的已用部分</translation>
    </message>
    <message>
        <source>Memory of the cache = 2 × layers × hidden size × length × batch × bytes of the data type.</source>
        <translation>缓存的内存 = 2 × 层数 × 隐藏维度 × 长度 × 批大小 × 数据类型的字节数。</translation>
    </message>
    <message>
        <source>Menu</source>
        <translation>菜单</translation>
    </message>
    <message>
        <source>Message</source>
        <translation>消息</translation>
    </message>
    <message>
        <source>Message {n} could not be read: {why}</source>
        <translation>无法读取消息 {n}：{why}</translation>
    </message>
    <message>
        <source>Message: {text}</source>
        <translation>消息：{text}</translation>
    </message>
    <message>
        <source>Messages</source>
        <translation>消息</translation>
    </message>
    <message>
        <source>Messages that wait to be sent</source>
        <translation>等待发送的消息</translation>
    </message>
    <message>
        <source>Min P</source>
        <translation>Min P</translation>
    </message>
    <message>
        <source>Minutes</source>
        <translation>分钟</translation>
    </message>
    <message>
        <source>Mirostat</source>
        <translation>Mirostat</translation>
    </message>
    <message>
        <source>Mirostat 1</source>
        <translation>Mirostat 1</translation>
    </message>
    <message>
        <source>Mirostat 2</source>
        <translation>Mirostat 2</translation>
    </message>
    <message>
        <source>Mirostat learning rate</source>
        <translation>Mirostat 学习率</translation>
    </message>
    <message>
        <source>Mirostat target entropy</source>
        <translation>Mirostat 目标熵</translation>
    </message>
    <message>
        <source>Mirostat, adaptive P</source>
        <translation>Mirostat、adaptive P</translation>
    </message>
    <message>
        <source>Missed messages cannot be asked for: {why}</source>
        <translation>无法请求错过的消息：{why}</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Models</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Models and settings</source>
        <translation>模型与设置</translation>
    </message>
    <message>
        <source>Models on this computer</source>
        <translation>这台电脑上的模型</translation>
    </message>
    <message>
        <source>Models on this computer…</source>
        <translation>这台电脑上的模型…</translation>
    </message>
    <message>
        <source>Models that fit into the {free} of memory that are free now: {fitting} of {n}</source>
        <translation>可在当前空闲的 {free} 内存中运行的模型：{fitting} / {n}</translation>
    </message>
    <message>
        <source>Models to download</source>
        <translation>可下载的模型</translation>
    </message>
    <message>
        <source>More about presets</source>
        <translation>预设的更多操作</translation>
    </message>
    <message>
        <source>More about this message</source>
        <translation>这条消息的更多操作</translation>
    </message>
    <message>
        <source>More threads write faster.</source>
        <translation>线程越多，生成越快。</translation>
    </message>
    <message>
        <source>Most conversations and branches in the cache at the same time</source>
        <translation>缓存中同时存在的对话和分支的最大数量</translation>
    </message>
    <message>
        <source>Most tokens computed at once, in one graph</source>
        <translation>一次在一个计算图中计算的最大 token 数</translation>
    </message>
    <message>
        <source>Most tokens in one answer</source>
        <translation>一个回答的最大 token 数</translation>
    </message>
    <message>
        <source>Most tokens in one llama_decode call</source>
        <translation>一次 llama_decode 调用的最大 token 数</translation>
    </message>
    <message>
        <source>Move</source>
        <translation>移动</translation>
    </message>
    <message>
        <source>Move down</source>
        <translation>下移</translation>
    </message>
    <message>
        <source>Move down (Alt+Down)</source>
        <translation>下移 (Alt+Down)</translation>
    </message>
    <message>
        <source>Move the chat to a folder</source>
        <translation>将对话移到文件夹</translation>
    </message>
    <message>
        <source>Move the cursor</source>
        <translation>移动光标</translation>
    </message>
    <message>
        <source>Move the selected results to the trash (Del)</source>
        <translation>将选中的结果移到回收站 (Del)</translation>
    </message>
    <message>
        <source>Move to folder</source>
        <translation>移到文件夹</translation>
    </message>
    <message>
        <source>Move up</source>
        <translation>上移</translation>
    </message>
    <message>
        <source>Move up (Alt+Up)</source>
        <translation>上移 (Alt+Up)</translation>
    </message>
    <message>
        <source>Move “{title}” to a new folder</source>
        <translation>将“{title}”移到新文件夹</translation>
    </message>
    <message>
        <source>Moved positions wait for the next decode, and there is no free sequence to do one in.</source>
        <translation>已移动的位置要等到下一次解码，而没有空闲的序列可用于解码。</translation>
    </message>
    <message>
        <source>Moves these positions; K is rotated before the next decode</source>
        <translation>移动这些位置；K 会在下一次 decode 之前旋转</translation>
    </message>
    <message>
        <source>Moves used cells to the front; first shows what would change</source>
        <translation>将已用单元移到前面；先显示会有哪些变化</translation>
    </message>
    <message>
        <source>Moving cells takes kvdesk at most {times:.2g} times the least time that it can take.</source>
        <translation>kvdesk 移动单元的用时最多为最短可能用时的 {times:.2g} 倍。</translation>
    </message>
    <message>
        <source>Moving one conversation of an eighth of the cells takes {alone} of the time of a compaction, and the last used cell falls from {before:,.0f} to {after:,.0f} instead of {all:,.0f}.</source>
        <translation>移动占八分之一单元的一个对话，用时为整理的 {alone}，最后一个已用单元从 {before:,.0f} 降到 {after:,.0f}，而不是 {all:,.0f}。</translation>
    </message>
    <message>
        <source>Moving sequence {seq_id} by {shift} gives its recurrent state a negative position.</source>
        <translation>将序列 {seq_id} 移动 {shift} 会使其循环状态的位置为负。</translation>
    </message>
    <message>
        <source>Moving sequence {seq_id} by {shift} goes beyond what llama.cpp can count.</source>
        <translation>将序列 {seq_id} 移动 {shift} 会超出 llama.cpp 的计数范围。</translation>
    </message>
    <message>
        <source>Must positions start at 0, may they jump or go back, and does a context stack when they do?</source>
        <translation>位置必须从 0 开始吗？可以跳跃或回退吗？这样做时上下文会叠加吗？</translation>
    </message>
    <message>
        <source>My preset</source>
        <translation>我的预设</translation>
    </message>
    <message>
        <source>N x streams x the row of one cell in all layers</source>
        <translation>N x stream 数 x 所有层中一个单元的行</translation>
    </message>
    <message>
        <source>N: the cells of the stream</source>
        <translation>N：stream 的单元数</translation>
    </message>
    <message>
        <source>Name</source>
        <translation>名称</translation>
    </message>
    <message>
        <source>Name of the folder</source>
        <translation>文件夹名称</translation>
    </message>
    <message>
        <source>Name of the new folder</source>
        <translation>新文件夹的名称</translation>
    </message>
    <message>
        <source>Name of the preset</source>
        <translation>预设名称</translation>
    </message>
    <message>
        <source>New chat</source>
        <translation>新对话</translation>
    </message>
    <message>
        <source>New chat (Ctrl+N)</source>
        <translation>新对话 (Ctrl+N)</translation>
    </message>
    <message>
        <source>New folder for this chat</source>
        <translation>为这个对话新建文件夹</translation>
    </message>
    <message>
        <source>New folder…</source>
        <translation>新建文件夹…</translation>
    </message>
    <message>
        <source>New key</source>
        <translation>新的密钥</translation>
    </message>
    <message>
        <source>New line</source>
        <translation>换行</translation>
    </message>
    <message>
        <source>Next</source>
        <translation>下一步</translation>
    </message>
    <message>
        <source>Next search result</source>
        <translation>下一个搜索结果</translation>
    </message>
    <message>
        <source>Next token</source>
        <translation>下一个 token</translation>
    </message>
    <message>
        <source>Next tokens are compared with the state that was undone.</source>
        <translation>下一个 token 与撤销前的状态相比较。</translation>
    </message>
    <message>
        <source>No action has these letters.</source>
        <translation>没有包含这些字母的操作。</translation>
    </message>
    <message>
        <source>No answer is being written in this chat.</source>
        <translation>这个对话没有正在生成的回答。</translation>
    </message>
    <message>
        <source>No cell changed.</source>
        <translation>没有单元变化。</translation>
    </message>
    <message>
        <source>No chat has the id or title {name}.</source>
        <translation>没有 id 或标题为 {name} 的对话。</translation>
    </message>
    <message>
        <source>No chat is open.</source>
        <translation>没有打开的对话。</translation>
    </message>
    <message>
        <source>No compaction yet: nothing has moved K and V.</source>
        <translation>还没有整理过：K 和 V 没有移动过。</translation>
    </message>
    <message>
        <source>No context</source>
        <translation>没有上下文</translation>
    </message>
    <message>
        <source>No conversation is in the cache: nothing is prefilled again.</source>
        <translation>缓存中没有对话：无需重新预填充。</translation>
    </message>
    <message>
        <source>No conversation owns this sequence.</source>
        <translation>没有对话拥有这个序列。</translation>
    </message>
    <message>
        <source>No favourite</source>
        <translation>不再收藏</translation>
    </message>
    <message>
        <source>No folder</source>
        <translation>没有文件夹</translation>
    </message>
    <message>
        <source>No layer is rotated by position, and llama.cpp would abort on an empty rotation.</source>
        <translation>没有一层按位置旋转，llama.cpp 会因空的旋转而中止。</translation>
    </message>
    <message>
        <source>No message of this chat was deleted, and no chat in the last seconds.</source>
        <translation>这个对话没有删除过消息，最近几秒内也没有删除对话。</translation>
    </message>
    <message>
        <source>No model is loaded.</source>
        <translation>没有加载模型。</translation>
    </message>
    <message>
        <source>No model is loaded: open a GGUF file first.</source>
        <translation>没有加载模型：请先打开一个 GGUF 文件。</translation>
    </message>
    <message>
        <source>No model is open</source>
        <translation>没有打开的模型</translation>
    </message>
    <message>
        <source>No model is open.</source>
        <translation>没有打开的模型。</translation>
    </message>
    <message>
        <source>No part of a recurrent state can be removed: an edit goes back to a checkpoint of the whole state.</source>
        <translation>循环状态不能部分移除：编辑时会回到整个状态的一个检查点。</translation>
    </message>
    <message>
        <source>No part of this model&apos;s state can be removed.</source>
        <translation>这个模型的状态不能部分移除。</translation>
    </message>
    <message>
        <source>No program has asked yet.</source>
        <translation>还没有程序发出请求。</translation>
    </message>
    <message>
        <source>No program opens it; the report is {file}</source>
        <translation>没有程序可以打开它；报告位于 {file}</translation>
    </message>
    <message>
        <source>No question of this chat has several answers. “Answer again” makes another one.</source>
        <translation>这个对话中没有有多个回答的问题。“重新回答”可以再生成一个。</translation>
    </message>
    <message>
        <source>No seq_id is free to compute in.</source>
        <translation>没有空闲的 seq_id 可用于计算。</translation>
    </message>
    <message>
        <source>No sequence holds a cell yet.</source>
        <translation>还没有序列占用单元。</translation>
    </message>
    <message>
        <source>No sequence is in the cache yet.</source>
        <translation>缓存中还没有序列。</translation>
    </message>
    <message>
        <source>No server is connected.</source>
        <translation>没有连接服务器。</translation>
    </message>
    <message>
        <source>No setting has these words.</source>
        <translation>没有包含这些词的设置。</translation>
    </message>
    <message>
        <source>No suspect makes equal requests slower: at most {ratio:.2g} times.</source>
        <translation>没有嫌疑会使相同的请求变慢：最多为 {ratio:.2g} 倍。</translation>
    </message>
    <message>
        <source>No system prompt</source>
        <translation>没有系统提示词</translation>
    </message>
    <message>
        <source>No system prompt. Say here how the model is to answer in this chat.</source>
        <translation>没有系统提示词。在这里说明模型在这个对话中应如何回答。</translation>
    </message>
    <message>
        <source>No whole block follows</source>
        <translation>后面没有完整的块</translation>
    </message>
    <message>
        <source>No.</source>
        <translation>序号</translation>
    </message>
    <message>
        <source>No: a compaction cures as much ({compacted:.2g} of the time of a token; rebuilt: {read:.2g}).</source>
        <translation>否：整理的效果相同（一个 token 的用时为原来的 {compacted:.2g} 倍；重建后为 {read:.2g} 倍）。</translation>
    </message>
    <message>
        <source>No: a scattered cache is at most {ratio:.2g} times slower.</source>
        <translation>否：分散的缓存最多慢到 {ratio:.2g} 倍。</translation>
    </message>
    <message>
        <source>No: in {minutes:.2g} minutes nothing grows with time.</source>
        <translation>否：{minutes:.2g} 分钟内没有任何数值随时间增长。</translation>
    </message>
    <message>
        <source>No: it frees {freed:.2g} of {held:.2g} MB.</source>
        <translation>否：{held:.2g} MB 中只释放了 {freed:.2g} MB。</translation>
    </message>
    <message>
        <source>No: it gives {hidden:.2g} times what is allocated, with K/V heads {kv_heads:.2g} times.</source>
        <translation>否：算出的是实际分配的 {hidden:.2g} 倍，按 K/V head 计算则为 {kv_heads:.2g} 倍。</translation>
    </message>
    <message>
        <source>No: which id a request has makes no difference to its time.</source>
        <translation>否：请求使用哪个 id 不影响其用时。</translation>
    </message>
    <message>
        <source>No: without sharing, a chat&apos;s first token takes {ratio:.2g} times as long.</source>
        <translation>否：不共享时，对话的首个 token 用时为共享时的 {ratio:.2g} 倍。</translation>
    </message>
    <message>
        <source>No: without the cache {most} tokens take {ratio:.2g} times as long.</source>
        <translation>否：不用缓存时，{most} 个 token 的用时为使用缓存时的 {ratio:.2g} 倍。</translation>
    </message>
    <message>
        <source>No: {most:,} cells cost memory ({least_mb:,.1f} to {most_mb:,.1f} MB) and no time.</source>
        <translation>否：{most:,} 个单元只多占内存（{least_mb:,.1f} 到 {most_mb:,.1f} MB），不多花时间。</translation>
    </message>
    <message>
        <source>None of its tokens is in the cache.</source>
        <translation>它的 token 都不在缓存中。</translation>
    </message>
    <message>
        <source>None of the suspects makes equal requests slower: at most the last takes {most} times the first ({name}), and {record} times where earlier tokens are kept and sent again.</source>
        <translation>没有一个嫌疑会使相同的请求变慢：最后一个最多是第一个的 {most} 倍（{name}）；保留并重新发送之前的 token 时为 {record} 倍。</translation>
    </message>
    <message>
        <source>None of the tools that may be called were offered.</source>
        <translation>允许调用的工具都没有提供。</translation>
    </message>
    <message>
        <source>None yet: Run makes the first one.</source>
        <translation>还没有：点击“运行”得到第一个。</translation>
    </message>
    <message>
        <source>None, if the server asks for none</source>
        <translation>如果服务器不要求密钥，则留空</translation>
    </message>
    <message>
        <source>Not certain: {name}, {figure}, was judged by {limit:.3g}, which is within its interval.</source>
        <translation>不确定：{name} 为 {figure}，判断所依据的值 {limit:.3g} 在其区间之内。</translation>
    </message>
    <message>
        <source>Not even the smallest context fits: close other programs, or take a smaller model.</source>
        <translation>连最小的上下文也放不下：请关闭其他程序，或使用更小的模型。</translation>
    </message>
    <message>
        <source>Not judged, since they took too long and were stopped: {names}.</source>
        <translation>因用时过长而被停止、未作判断：{names}。</translation>
    </message>
    <message>
        <source>Not with this model and context.</source>
        <translation>用这个模型和上下文无法做到。</translation>
    </message>
    <message>
        <source>Nothing can be added to the answer.</source>
        <translation>回答无法再添加内容。</translation>
    </message>
    <message>
        <source>Nothing found</source>
        <translation>没有找到</translation>
    </message>
    <message>
        <source>Nothing found. Titles and texts are searched.</source>
        <translation>没有找到。搜索范围是标题和正文。</translation>
    </message>
    <message>
        <source>Nothing is prefilled again for this: the cache has all of it that it has now.</source>
        <translation>这不需要重新预填充：缓存中现有的内容全部可用。</translation>
    </message>
    <message>
        <source>Nothing is timed, so the load of the machine does not matter.</source>
        <translation>没有计时，因此机器的负载没有影响。</translation>
    </message>
    <message>
        <source>Nothing of this conversation was in the cache: all {n:,} tokens were prefilled.</source>
        <translation>这个对话在缓存中没有任何内容：全部 {n:,} 个 token 都经过预填充。</translation>
    </message>
    <message>
        <source>Nothing to import</source>
        <translation>没有可导入的内容</translation>
    </message>
    <message>
        <source>Nothing was heard so far at {address}. The server tells of its blocks when they change.</source>
        <translation>到目前为止没有从 {address} 收到任何内容。服务器在块发生变化时才会通知。</translation>
    </message>
    <message>
        <source>Nothing was imported: all of its chats are here already.</source>
        <translation>没有导入任何内容：其中的对话这里都已经有了。</translation>
    </message>
    <message>
        <source>Nothing with GGUF files has this name.</source>
        <translation>没有符合这个名称且带 GGUF 文件的模型。</translation>
    </message>
    <message>
        <source>Notices</source>
        <translation>通知</translation>
    </message>
    <message>
        <source>Now</source>
        <translation>现在</translation>
    </message>
    <message>
        <source>Numbers in all its weights</source>
        <translation>全部权重中的数值个数</translation>
    </message>
    <message>
        <source>Of all files of the model</source>
        <translation>模型所有文件的</translation>
    </message>
    <message>
        <source>Of all its files</source>
        <translation>其所有文件的</translation>
    </message>
    <message>
        <source>Of all prompt tokens, those that were in the cache: the server&apos;s own figure</source>
        <translation>全部提示词 token 中已在缓存中的：服务器自己的数值</translation>
    </message>
    <message>
        <source>Of all requests</source>
        <translation>所有请求的</translation>
    </message>
    <message>
        <source>Of all {n} gaps since the model was opened</source>
        <translation>模型打开以来全部 {n} 个间隔的</translation>
    </message>
    <message>
        <source>Of each answer by which the speed is compared</source>
        <translation>用于比较速度的每个回答的</translation>
    </message>
    <message>
        <source>Of eight prompts that come at once each waits {sooner} times as long when the shortest is read first as in the order they came.</source>
        <translation>同时到来的八段提示词中，先读最短的时，每段等待的时间是按到来顺序时的 {sooner} 倍。</translation>
    </message>
    <message>
        <source>Of eight that come at once</source>
        <translation>同时到来的八个的</translation>
    </message>
    <message>
        <source>Of messages of this chat until kvdesk is closed, of a chat for a few seconds</source>
        <translation>这个对话的消息在关闭 kvdesk 之前可以恢复，对话在几秒之内可以恢复</translation>
    </message>
    <message>
        <source>Of the cache</source>
        <translation>缓存的</translation>
    </message>
    <message>
        <source>Of the cache, and slots of the simulated ones</source>
        <translation>缓存的单元数，以及模拟缓存的槽位数</translation>
    </message>
    <message>
        <source>Of the first chat, behind its first question</source>
        <translation>第一个对话的，位于其第一个问题之后</translation>
    </message>
    <message>
        <source>Of the interface; changes at once</source>
        <translation>界面的语言；立即生效</translation>
    </message>
    <message>
        <source>Of the text at most</source>
        <translation>最多取文本中的这些</translation>
    </message>
    <message>
        <source>Of the text, in pixels before the zoom</source>
        <translation>文字的字号，以缩放之前的像素计</translation>
    </message>
    <message>
        <source>Of the text; the second half of each is judged</source>
        <translation>取自文本；每块的后半部分用于评判</translation>
    </message>
    <message>
        <source>Of the tokens at least so likely, XTC leaves all but the last; above 0.5 it does nothing</source>
        <translation>在至少这么可能的 token 中，XTC 只留下最后一个；大于 0.5 时不起作用</translation>
    </message>
    <message>
        <source>Of the whole window (Ctrl++, Ctrl+-, Ctrl+0)</source>
        <translation>整个窗口的缩放（Ctrl++、Ctrl+-、Ctrl+0）</translation>
    </message>
    <message>
        <source>Of this model&apos;s {n_split} files {n} are missing: {first}.</source>
        <translation>这个模型共 {n_split} 个文件，缺少 {n} 个：{first}。</translation>
    </message>
    <message>
        <source>Of two conversations, in a context of twice as many</source>
        <translation>两个对话的，上下文为其两倍</translation>
    </message>
    <message>
        <source>Off</source>
        <translation>关闭</translation>
    </message>
    <message>
        <source>On this computer</source>
        <translation>在这台电脑上</translation>
    </message>
    <message>
        <source>On this computer: {name}</source>
        <translation>这台电脑上：{name}</translation>
    </message>
    <message>
        <source>One buffer for all sequences, so that they can share cells; off, each has a part of its own</source>
        <translation>所有序列共用一个缓冲区，因此可以共享单元；关闭时每个序列有自己的部分</translation>
    </message>
    <message>
        <source>One chat of this file has more than {n} MB; kvdesk reads no larger ones.</source>
        <translation>这个文件中有一个对话超过 {n} MB；kvdesk 不读取更大的对话。</translation>
    </message>
    <message>
        <source>One chat was imported.</source>
        <translation>已导入 1 个对话。</translation>
    </message>
    <message>
        <source>One of the caches has no layers: llama.cpp would abort.</source>
        <translation>其中一个缓存没有层：llama.cpp 会中止。</translation>
    </message>
    <message>
        <source>One operation back</source>
        <translation>后退一次操作</translation>
    </message>
    <message>
        <source>One operation forward</source>
        <translation>前进一次操作</translation>
    </message>
    <message>
        <source>One square is one token, in its chat&apos;s colour; grey is free. The model reads up to the dashed line, the stronger grey too.</source>
        <translation>一个方块是一个 token，颜色表示其对话；灰色为空闲。模型读取到虚线为止，包括较深的灰色。</translation>
    </message>
    <message>
        <source>One state for every sequence</source>
        <translation>所有序列共用一个状态</translation>
    </message>
    <message>
        <source>One token behind the text, with most holes</source>
        <translation>文本之后的一个 token，空洞最多时</translation>
    </message>
    <message>
        <source>One token by number of threads</source>
        <translation>一个 token 的用时，按线程数</translation>
    </message>
    <message>
        <source>One token by size of the context</source>
        <translation>一个 token 的用时，按上下文长度</translation>
    </message>
    <message>
        <source>One zip file is written where you choose. Nothing is sent: you give it to whom you want.</source>
        <translation>会在你选择的位置写入一个 zip 文件。不会发送任何内容：由你决定交给谁。</translation>
    </message>
    <message>
        <source>Only a part of each K head is rotated: with quantized K llama.cpp gets that wrong.</source>
        <translation>每个 K head 只有一部分旋转：使用量化 K 时 llama.cpp 会出错。</translation>
    </message>
    <message>
        <source>Only a whole conversation can be removed: no part of this model&apos;s state can.</source>
        <translation>只能移除整个对话：这个模型的状态不能部分移除。</translation>
    </message>
    <message>
        <source>Only on a network that you trust: there is no encryption</source>
        <translation>只用于你信任的网络：没有加密</translation>
    </message>
    <message>
        <source>Only the cell map and four numbers (Ctrl+Shift+I)</source>
        <translation>只显示单元图和四个数值 (Ctrl+Shift+I)</translation>
    </message>
    <message>
        <source>Only the other rounds count.</source>
        <translation>只计其余各轮。</translation>
    </message>
    <message>
        <source>Only this one: what follows stays. It can be undone</source>
        <translation>只删除这一条：后面的内容保留。可以撤销</translation>
    </message>
    <message>
        <source>Only what is still in the sliding window can be copied.</source>
        <translation>只能复制仍在滑动窗口中的内容。</translation>
    </message>
    <message>
        <source>Only with K/V heads: with the hidden size it gives {hidden:.2g} times what is allocated.</source>
        <translation>只有按 K/V head 计算时才成立：按隐藏维度算出的是实际分配的 {hidden:.2g} 倍。</translation>
    </message>
    <message>
        <source>Open</source>
        <translation>打开</translation>
    </message>
    <message>
        <source>Open a file…</source>
        <translation>打开文件…</translation>
    </message>
    <message>
        <source>Open a model</source>
        <translation>打开模型</translation>
    </message>
    <message>
        <source>Open a model file…</source>
        <translation>打开模型文件…</translation>
    </message>
    <message>
        <source>Open a model to send. Your text stays here.</source>
        <translation>打开一个模型即可发送。你的文本会保留在这里。</translation>
    </message>
    <message>
        <source>Open a model, or choose a file, to run an experiment on.</source>
        <translation>打开一个模型，或选择一个文件，用来运行实验。</translation>
    </message>
    <message>
        <source>Open a model…</source>
        <translation>打开模型…</translation>
    </message>
    <message>
        <source>Open another model (Ctrl+O)</source>
        <translation>打开其他模型 (Ctrl+O)</translation>
    </message>
    <message>
        <source>Open the embedded model</source>
        <translation>打开内置模型</translation>
    </message>
    <message>
        <source>Open the folder</source>
        <translation>打开文件夹</translation>
    </message>
    <message>
        <source>Open the folder of the file</source>
        <translation>打开文件所在的文件夹</translation>
    </message>
    <message>
        <source>Open the inspector (Ctrl+I) to operate on the cache by hand.</source>
        <translation>打开检查器 (Ctrl+I) 后可以手动操作缓存。</translation>
    </message>
    <message>
        <source>Open the inspector to see which are in the cache.</source>
        <translation>打开检查器可以查看哪些在缓存中。</translation>
    </message>
    <message>
        <source>Open the page with plots, samples and machine in the browser</source>
        <translation>在浏览器中打开包含图表、样本和机器信息的页面</translation>
    </message>
    <message>
        <source>Open the report</source>
        <translation>打开报告</translation>
    </message>
    <message>
        <source>Opens the menu of models</source>
        <translation>打开模型菜单</translation>
    </message>
    <message>
        <source>Opens the settings at n_ctx and shows what a larger one takes</source>
        <translation>打开设置中的 n_ctx，并显示更大的值占用多少</translation>
    </message>
    <message>
        <source>Opens “Serve on this computer”</source>
        <translation>打开“在这台电脑上提供服务”</translation>
    </message>
    <message>
        <source>Operation and reason</source>
        <translation>操作及原因</translation>
    </message>
    <message>
        <source>Operation that is shown</source>
        <translation>当前显示的操作</translation>
    </message>
    <message>
        <source>Operation {number:,} cannot be undone any more: its copy of the cache is gone.</source>
        <translation>操作 {number:,} 已无法撤销：它的缓存副本已经不在。</translation>
    </message>
    <message>
        <source>Operations</source>
        <translation>操作</translation>
    </message>
    <message>
        <source>Operations a second while playing</source>
        <translation>播放时每秒的操作数</translation>
    </message>
    <message>
        <source>Operations on the cache, for the time line; the oldest go first</source>
        <translation>缓存上的操作，供时间线使用；最早的先被丢弃</translation>
    </message>
    <message>
        <source>Operations that are listed</source>
        <translation>列出的操作</translation>
    </message>
    <message>
        <source>Operations, positions, graphs, timeline, log</source>
        <translation>操作、位置、图表、时间线、日志</translation>
    </message>
    <message>
        <source>Order of the samplers</source>
        <translation>采样器的顺序</translation>
    </message>
    <message>
        <source>Other models…</source>
        <translation>其他模型…</translation>
    </message>
    <message>
        <source>Other processes took {median:.2f} cores in the median round and {worst:.2f} in the worst: {rest}</source>
        <translation>其他进程在中位的一轮占用 {median:.2f} 个核心，最多的一轮占用 {worst:.2f} 个：{rest}</translation>
    </message>
    <message>
        <source>Other programs ask this model over HTTP, on this cache; you see what they reuse, and why</source>
        <translation>其他程序通过 HTTP 在这个缓存上请求这个模型；你可以看到它们复用了什么，以及原因</translation>
    </message>
    <message>
        <source>Other programs use this model at {address}. Click for their requests.</source>
        <translation>其他程序正通过 {address} 使用这个模型。点击可查看它们的请求。</translation>
    </message>
    <message>
        <source>Over a threshold, or in idle time; the whole cache rather than its holes.</source>
        <translation>超过阈值时，或在空闲时；整理整个缓存，而不只是空洞。</translation>
    </message>
    <message>
        <source>Over hours fragmentation builds up, memory grows and requests become slower.</source>
        <translation>数小时内碎片不断累积，内存增长，请求变慢。</translation>
    </message>
    <message>
        <source>Over time</source>
        <translation>随时间的变化</translation>
    </message>
    <message>
        <source>Over {minutes:.3g} minutes of mixed use a token&apos;s time grew by {speed} and the memory by {memory}, the hole ratio by {holes}.</source>
        <translation>在 {minutes:.3g} 分钟的混合使用中，一个 token 的用时增长了 {speed}，内存增长了 {memory}，空洞率增长了 {holes}。</translation>
    </message>
    <message>
        <source>Over {minutes:.3g} minutes of mixed use a token&apos;s time grew by {speed} and the memory by {memory}.</source>
        <translation>在 {minutes:.3g} 分钟的混合使用中，一个 token 的用时增长了 {speed}，内存增长了 {memory}。</translation>
    </message>
    <message>
        <source>Own sampling for this chat</source>
        <translation>这个对话单独的采样设置</translation>
    </message>
    <message>
        <source>Own template for this chat</source>
        <translation>这个对话单独的模板</translation>
    </message>
    <message>
        <source>Own template of this chat (Jinja)</source>
        <translation>这个对话单独的模板 (Jinja)</translation>
    </message>
    <message>
        <source>Own values</source>
        <translation>单独的值</translation>
    </message>
    <message>
        <source>P50 of the last {rolling} gaps before; of up to 64 gaps since</source>
        <translation>P50：之前为最近 {rolling} 个间隔；之后最多为 64 个间隔</translation>
    </message>
    <message>
        <source>Pages</source>
        <translation>页</translation>
    </message>
    <message>
        <source>Pages and trees</source>
        <translation>分页与前缀树</translation>
    </message>
    <message>
        <source>Pages bring the waste of a KV cache from 60 to 80 % down to less than 4 %; a tree reuses more.</source>
        <translation>分页将 KV 缓存的浪费从 60% 到 80% 降到 4% 以下；前缀树复用更多。</translation>
    </message>
    <message>
        <source>Pages of {page_size}: {n_pages} held = {n_slots} slots, {n_empty} empty ({waste} wasted), {n_shared} shared. llama.cpp: {n_used} cells for the same.</source>
        <translation>每页 {page_size}：占用 {n_pages} 页 = {n_slots} 个槽位，{n_empty} 个为空（浪费 {waste}），{n_shared} 页共享。llama.cpp：存储相同内容用 {n_used} 个单元。</translation>
    </message>
    <message>
        <source>Parameters</source>
        <translation>参数</translation>
    </message>
    <message>
        <source>Parameters and machine</source>
        <translation>参数与机器</translation>
    </message>
    <message>
        <source>Parameters of this chat</source>
        <translation>这个对话的参数</translation>
    </message>
    <message>
        <source>Parameters: {changes}</source>
        <translation>参数：{changes}</translation>
    </message>
    <message>
        <source>Past results</source>
        <translation>以往的结果</translation>
    </message>
    <message>
        <source>Paste it into a terminal: it asks this model for an answer</source>
        <translation>粘贴到终端中运行：它会请求这个模型给出回答</translation>
    </message>
    <message>
        <source>Pasted text</source>
        <translation>粘贴的文本</translation>
    </message>
    <message>
        <source>Pasted text {n}</source>
        <translation>粘贴的文本 {n}</translation>
    </message>
    <message>
        <source>Pause</source>
        <translation>暂停</translation>
    </message>
    <message>
        <source>Penalties for repetition</source>
        <translation>重复惩罚</translation>
    </message>
    <message>
        <source>Perplexity of all that came after the first overflow</source>
        <translation>首次溢出之后全部文本的困惑度</translation>
    </message>
    <message>
        <source>Physical batch size</source>
        <translation>物理批大小</translation>
    </message>
    <message>
        <source>Picture (PNG)…</source>
        <translation>图片 (PNG)…</translation>
    </message>
    <message>
        <source>Pieces of neighbouring cells</source>
        <translation>相邻单元的段数</translation>
    </message>
    <message>
        <source>Pin</source>
        <translation>固定</translation>
    </message>
    <message>
        <source>Pin or unpin the chat</source>
        <translation>固定对话，或取消固定</translation>
    </message>
    <message>
        <source>Pinned messages</source>
        <translation>固定的消息</translation>
    </message>
    <message>
        <source>Pinned messages are listed over the chat. A pin does not keep a message in the context.</source>
        <translation>固定的消息列在对话上方。固定不会让消息留在上下文中。</translation>
    </message>
    <message>
        <source>Pinned: a click goes there. A pin does not keep it in the context.</source>
        <translation>已固定：点击可跳到该消息。固定不会让它留在上下文中。</translation>
    </message>
    <message>
        <source>Placing and K-shift</source>
        <translation>放置与 K-shift</translation>
    </message>
    <message>
        <source>Play the operations from here on</source>
        <translation>从这里开始播放操作</translation>
    </message>
    <message>
        <source>Policies</source>
        <translation>策略</translation>
    </message>
    <message>
        <source>Policies evict whole messages until an eighth of the window is free, as kvdesk does.</source>
        <translation>与 kvdesk 一样，各策略移除整条消息，直到窗口的八分之一空闲。</translation>
    </message>
    <message>
        <source>Port</source>
        <translation>端口</translation>
    </message>
    <message>
        <source>Position</source>
        <translation>位置</translation>
    </message>
    <message>
        <source>Position after the last</source>
        <translation>最后位置的下一个</translation>
    </message>
    <message>
        <source>Position duplicates, in cells: cells - distinct positions</source>
        <translation>位置重复（单元数）：单元数 - 不同位置数</translation>
    </message>
    <message>
        <source>Position holes, in positions: (pos_max - pos_min + 1) - distinct positions</source>
        <translation>位置空缺（位置数）：(pos_max - pos_min + 1) - 不同位置数</translation>
    </message>
    <message>
        <source>Position to try a token at</source>
        <translation>尝试放入 token 的位置</translation>
    </message>
    <message>
        <source>Position {pos} does not exist: this model has learned {n_positions} positions.</source>
        <translation>位置 {pos} 不存在：这个模型学习了 {n_positions} 个位置。</translation>
    </message>
    <message>
        <source>Position {pos} is beyond what llama.cpp can count.</source>
        <translation>位置 {pos} 超出 llama.cpp 的计数范围。</translation>
    </message>
    <message>
        <source>Position {pos} is negative.</source>
        <translation>位置 {pos} 为负。</translation>
    </message>
    <message>
        <source>Positions</source>
        <translation>位置</translation>
    </message>
    <message>
        <source>Positions are learned and stay inside K and V: only their numbers change.</source>
        <translation>位置是学习得到的，留在 K 和 V 中：只有它们的编号会变。</translation>
    </message>
    <message>
        <source>Positions cannot be below 0: shift by {first} at most.</source>
        <translation>位置不能小于 0：最多移动 {first}。</translation>
    </message>
    <message>
        <source>Positions have moved whose K is rotated before the next decode</source>
        <translation>有位置已移动，其 K 会在下一次 decode 之前旋转</translation>
    </message>
    <message>
        <source>Positions must be continuous within a sequence (Y = X + 1); when they go back to 0 the old context may stay underneath.</source>
        <translation>同一序列中的位置必须连续（Y = X + 1）；回到 0 时，旧的上下文可能仍叠在下面。</translation>
    </message>
    <message>
        <source>Positions of each conversation</source>
        <translation>每个对话的位置</translation>
    </message>
    <message>
        <source>Positions of {name}: {range_text}</source>
        <translation>{name} 的位置：{range_text}</translation>
    </message>
    <message>
        <source>Positions to shift by</source>
        <translation>移动的位置数</translation>
    </message>
    <message>
        <source>Precise</source>
        <translation>精确</translation>
    </message>
    <message>
        <source>Prefill again now</source>
        <translation>现在重新预填充</translation>
    </message>
    <message>
        <source>Prefill ahead</source>
        <translation>提前预填充</translation>
    </message>
    <message>
        <source>Prefill at their next message</source>
        <translation>在其下一条消息时预填充</translation>
    </message>
    <message>
        <source>Prefilled tokens</source>
        <translation>预填充的 token</translation>
    </message>
    <message>
        <source>Presence penalty</source>
        <translation>存在惩罚</translation>
    </message>
    <message>
        <source>Preset</source>
        <translation>预设</translation>
    </message>
    <message>
        <source>Presets (*.json)</source>
        <translation>预设 (*.json)</translation>
    </message>
    <message>
        <source>Presets (*.json);;All files (*)</source>
        <translation>预设 (*.json);;所有文件 (*)</translation>
    </message>
    <message>
        <source>Previous search result</source>
        <translation>上一个搜索结果</translation>
    </message>
    <message>
        <source>Private resident memory</source>
        <translation>私有常驻内存</translation>
    </message>
    <message>
        <source>Processor time</source>
        <translation>处理器时间</translation>
    </message>
    <message>
        <source>Program</source>
        <translation>程序</translation>
    </message>
    <message>
        <source>Programs find kvdesk there</source>
        <translation>程序在此端口访问 kvdesk</translation>
    </message>
    <message>
        <source>Programs that have the old one are refused from then on</source>
        <translation>使用旧密钥的程序此后会被拒绝</translation>
    </message>
    <message>
        <source>Progress of the experiment</source>
        <translation>实验的进度</translation>
    </message>
    <message>
        <source>Progress of the import</source>
        <translation>导入进度</translation>
    </message>
    <message>
        <source>Progress of {name}</source>
        <translation>{name} 的进度</translation>
    </message>
    <message>
        <source>Prompt</source>
        <translation>提示词</translation>
    </message>
    <message>
        <source>Prompt of this chat, token by token</source>
        <translation>逐个 token 查看这个对话的提示词</translation>
    </message>
    <message>
        <source>Prompt tokens that were in the cache already</source>
        <translation>已经在缓存中的提示词 token</translation>
    </message>
    <message>
        <source>Prompt tokens that were known, and slots that were empty</source>
        <translation>已知的提示词 token，以及空的槽位</translation>
    </message>
    <message>
        <source>Prompts that begin alike</source>
        <translation>开头相同的提示词</translation>
    </message>
    <message>
        <source>Prompts with a common beginning are computed once, which saves computing and memory.</source>
        <translation>开头相同的提示词只计算一次，节省计算和内存。</translation>
    </message>
    <message>
        <source>Put {name} into the message box as text</source>
        <translation>将 {name} 作为文本放入输入框</translation>
    </message>
    <message>
        <source>Puts it back into the message box</source>
        <translation>将它放回消息输入框</translation>
    </message>
    <message>
        <source>Puts the saved sequence back: nothing is computed</source>
        <translation>放回保存的序列：无需计算</translation>
    </message>
    <message>
        <source>Puts the whole cache back as it was before the last operation by hand</source>
        <translation>将整个缓存恢复到上一次手动操作之前的状态</translation>
    </message>
    <message>
        <source>Puts the whole cache back as it was before this operation</source>
        <translation>将整个缓存恢复到这次操作之前的状态</translation>
    </message>
    <message>
        <source>Qt cannot be loaded: {missing_sentence}</source>
        <translation>无法加载 Qt：{missing_sentence}</translation>
    </message>
    <message>
        <source>Qt cannot open a window on this display ({where}). {without_display}</source>
        <translation>Qt 无法在这个显示上打开窗口（{where}）。{without_display}</translation>
    </message>
    <message>
        <source>Qt cannot open a window on this display ({where}): {missing_sentence}</source>
        <translation>Qt 无法在这个显示上打开窗口（{where}）：{missing_sentence}</translation>
    </message>
    <message>
        <source>Quantization, as the file&apos;s name says</source>
        <translation>量化方式，按文件名所述</translation>
    </message>
    <message>
        <source>Quantized K and V need half the memory or less, and only a little quality is lost.</source>
        <translation>量化的 K 和 V 只需一半或更少的内存，质量只损失一点。</translation>
    </message>
    <message>
        <source>Quantized V needs flash attention: llama.cpp refuses it without.</source>
        <translation>量化 V 需要 flash attention：没有它 llama.cpp 会拒绝。</translation>
    </message>
    <message>
        <source>Question</source>
        <translation>问题</translation>
    </message>
    <message>
        <source>Questions</source>
        <translation>问题</translation>
    </message>
    <message>
        <source>Questions about the cache, answered by experiments</source>
        <translation>用实验回答关于缓存的问题</translation>
    </message>
    <message>
        <source>Questions and answers in a day</source>
        <translation>一天中的问答数</translation>
    </message>
    <message>
        <source>Quit</source>
        <translation>退出</translation>
    </message>
    <message>
        <source>Random</source>
        <translation>随机</translation>
    </message>
    <message>
        <source>Random draws a new seed for every answer; with a number, the same prompt gets the same answer</source>
        <translation>随机表示每个回答使用新的种子；填入数字时，相同的提示词得到相同的回答</translation>
    </message>
    <message>
        <source>Random operations on the cache, every one compared with the engine in every cell.</source>
        <translation>对缓存进行随机操作，每次操作后都与引擎逐个单元核对。</translation>
    </message>
    <message>
        <source>Read another time</source>
        <translation>查看其他时刻</translation>
    </message>
    <message>
        <source>Read per new token</source>
        <translation>每个新 token 读取的量</translation>
    </message>
    <message>
        <source>Read them again now</source>
        <translation>现在重新读取</translation>
    </message>
    <message>
        <source>Read them when needed</source>
        <translation>需要时再读取</translation>
    </message>
    <message>
        <source>Read {name} in another encoding</source>
        <translation>用其他编码读取 {name}</translation>
    </message>
    <message>
        <source>Reading</source>
        <translation>正在读取</translation>
    </message>
    <message>
        <source>Reading conversations again</source>
        <translation>正在重新读取对话</translation>
    </message>
    <message>
        <source>Reading the journal was ended.</source>
        <translation>操作记录的读取已中止。</translation>
    </message>
    <message>
        <source>Reading the prompt</source>
        <translation>正在读取提示词</translation>
    </message>
    <message>
        <source>Reading the prompt: {done} of {total} tokens</source>
        <translation>正在读取提示词：{done} / {total} 个 token</translation>
    </message>
    <message>
        <source>Reading what is there already…</source>
        <translation>正在读取已有的内容…</translation>
    </message>
    <message>
        <source>Reading {n_tokens} tokens again {how_long}. {states}</source>
        <translation>重新读取 {n_tokens} 个 token，{how_long}。{states}</translation>
    </message>
    <message>
        <source>Reading {name}…</source>
        <translation>正在读取 {name}…</translation>
    </message>
    <message>
        <source>Reading {new} new tokens, {reused} are in the cache already</source>
        <translation>正在读取 {new} 个新 token，已有 {reused} 个在缓存中</translation>
    </message>
    <message>
        <source>Reading: {done:.1f} of {total:.1f} MB</source>
        <translation>正在读取：{done:.1f} / {total:.1f} MB</translation>
    </message>
    <message>
        <source>Reasoning</source>
        <translation>思考过程</translation>
    </message>
    <message>
        <source>Rebuild context</source>
        <translation>重建上下文</translation>
    </message>
    <message>
        <source>Rebuild the context</source>
        <translation>重建上下文</translation>
    </message>
    <message>
        <source>Rebuild the context with the same settings</source>
        <translation>用相同的设置重建上下文</translation>
    </message>
    <message>
        <source>Rebuild the context?</source>
        <translation>重建上下文？</translation>
    </message>
    <message>
        <source>Rebuilding removes all {n} cells in use from the cache.</source>
        <translation>重建会从缓存中移除全部 {n} 个已用单元。</translation>
    </message>
    <message>
        <source>Rebuilding removes all {n} cells in use from the cache: {each}.</source>
        <translation>重建会从缓存中移除全部 {n} 个已用单元：{each}。</translation>
    </message>
    <message>
        <source>Rebuilding the context</source>
        <translation>重建上下文</translation>
    </message>
    <message>
        <source>Rebuilding…</source>
        <translation>正在重建…</translation>
    </message>
    <message>
        <source>Rebuild…</source>
        <translation>重建…</translation>
    </message>
    <message>
        <source>Recently used first</source>
        <translation>最近使用的在前</translation>
    </message>
    <message>
        <source>Recompute</source>
        <translation>重新计算</translation>
    </message>
    <message>
        <source>Reconnect</source>
        <translation>重新连接</translation>
    </message>
    <message>
        <source>Refused batch: {sentence}</source>
        <translation>被拒绝的批次：{sentence}</translation>
    </message>
    <message>
        <source>Refused — {name}: {why}</source>
        <translation>被拒绝 — {name}：{why}</translation>
    </message>
    <message>
        <source>Remarks</source>
        <translation>备注</translation>
    </message>
    <message>
        <source>Remove</source>
        <translation>移除</translation>
    </message>
    <message>
        <source>Remove from the list</source>
        <translation>从列表中移除</translation>
    </message>
    <message>
        <source>Remove its cells</source>
        <translation>移除其单元</translation>
    </message>
    <message>
        <source>Remove its cells and all after it</source>
        <translation>移除其单元以及之后的所有单元</translation>
    </message>
    <message>
        <source>Remove the folder</source>
        <translation>删除文件夹</translation>
    </message>
    <message>
        <source>Remove {name}</source>
        <translation>移除 {name}</translation>
    </message>
    <message>
        <source>Removed</source>
        <translation>已移除</translation>
    </message>
    <message>
        <source>Removed again: holes below and above the text</source>
        <translation>随后移除：在文本前后留下空洞</translation>
    </message>
    <message>
        <source>Removes everything from the cache; the texts stay</source>
        <translation>移除缓存中的全部内容；文本会保留</translation>
    </message>
    <message>
        <source>Removes the cells of all other sequences</source>
        <translation>移除其他所有序列的单元</translation>
    </message>
    <message>
        <source>Removes these positions of the sequence from the cache</source>
        <translation>从缓存中移除该序列的这些位置</translation>
    </message>
    <message>
        <source>Removes this conversation&apos;s cells from the cache; its text stays.</source>
        <translation>从缓存中移除这个对话的单元；其文本会保留。</translation>
    </message>
    <message>
        <source>Rename</source>
        <translation>重命名</translation>
    </message>
    <message>
        <source>Rename preset</source>
        <translation>重命名预设</translation>
    </message>
    <message>
        <source>Rename the chat</source>
        <translation>重命名对话</translation>
    </message>
    <message>
        <source>Rename the folder</source>
        <translation>重命名文件夹</translation>
    </message>
    <message>
        <source>Rename, move, export, delete … (menu key)</source>
        <translation>重命名、移动、导出、删除…（菜单键）</translation>
    </message>
    <message>
        <source>Rename…</source>
        <translation>重命名…</translation>
    </message>
    <message>
        <source>Repeat penalty</source>
        <translation>重复惩罚</translation>
    </message>
    <message>
        <source>Repeat, presence and frequency penalties</source>
        <translation>重复、存在和频率惩罚</translation>
    </message>
    <message>
        <source>Repeated sequences up to so many tokens have no penalty</source>
        <translation>不超过这么多 token 的重复序列没有惩罚</translation>
    </message>
    <message>
        <source>Report a problem</source>
        <translation>报告问题</translation>
    </message>
    <message>
        <source>Report a problem…</source>
        <translation>报告问题…</translation>
    </message>
    <message>
        <source>Repository, and the files in it</source>
        <translation>仓库及其中的文件</translation>
    </message>
    <message>
        <source>Requests</source>
        <translation>请求数</translation>
    </message>
    <message>
        <source>Requests become slower: the last takes {ratio:.2g} times the first ({name}).</source>
        <translation>请求会变慢：最后一个的用时是第一个的 {ratio:.2g} 倍（{name}）。</translation>
    </message>
    <message>
        <source>Requests of other programs</source>
        <translation>其他程序的请求</translation>
    </message>
    <message>
        <source>Requests of the same size, one after another</source>
        <translation>大小相同、依次进行的请求</translation>
    </message>
    <message>
        <source>Requests, one after another; at least one more than there are ids</source>
        <translation>依次进行的请求；至少比 id 的数量多一个</translation>
    </message>
    <message>
        <source>Reset the zoom</source>
        <translation>重置缩放</translation>
    </message>
    <message>
        <source>Reset {name}</source>
        <translation>重置 {name}</translation>
    </message>
    <message>
        <source>Restart kvdesk</source>
        <translation>重新启动 kvdesk</translation>
    </message>
    <message>
        <source>Restart kvdesk to go on. Your chats are saved.</source>
        <translation>请重新启动 kvdesk 后继续。你的对话已保存。</translation>
    </message>
    <message>
        <source>Restart kvdesk to send.</source>
        <translation>请重新启动 kvdesk 后发送。</translation>
    </message>
    <message>
        <source>Restore defaults</source>
        <translation>恢复默认值</translation>
    </message>
    <message>
        <source>Results</source>
        <translation>结果</translation>
    </message>
    <message>
        <source>Resume</source>
        <translation>继续</translation>
    </message>
    <message>
        <source>Return codes</source>
        <translation>返回码</translation>
    </message>
    <message>
        <source>Reuse</source>
        <translation>复用</translation>
    </message>
    <message>
        <source>Reused last time</source>
        <translation>上次复用</translation>
    </message>
    <message>
        <source>Reused tokens</source>
        <translation>复用的 token</translation>
    </message>
    <message>
        <source>Reused tokens / prompt tokens of all requests since the model was opened</source>
        <translation>模型打开以来所有请求复用的 token / 提示词 token</translation>
    </message>
    <message>
        <source>Reused tokens / prompt tokens of one request</source>
        <translation>一个请求复用的 token / 提示词 token</translation>
    </message>
    <message>
        <source>Revert</source>
        <translation>还原</translation>
    </message>
    <message>
        <source>Ring or window</source>
        <translation>环或窗口</translation>
    </message>
    <message>
        <source>Room for the answer</source>
        <translation>留给回答的空间</translation>
    </message>
    <message>
        <source>Rounds</source>
        <translation>轮次</translation>
    </message>
    <message>
        <source>Run</source>
        <translation>运行</translation>
    </message>
    <message>
        <source>Run it in a process of its own</source>
        <translation>在单独的进程中运行</translation>
    </message>
    <message>
        <source>Running and waiting now: the server&apos;s own figures</source>
        <translation>当前正在运行和等待的：服务器自己的数值</translation>
    </message>
    <message>
        <source>Runs the engine in a process of its own: when llama.cpp crashes, the model is loaded again and the window stays. From the next model that is opened</source>
        <translation>在单独的进程中运行引擎：llama.cpp 崩溃时，模型会重新加载，窗口不受影响。从下一个打开的模型起生效</translation>
    </message>
    <message>
        <source>SGLang&apos;s tree (simulated)</source>
        <translation>SGLang 的前缀树（模拟）</translation>
    </message>
    <message>
        <source>SGLang. It would show its blocks if it was started with --kv-events-config.</source>
        <translation>SGLang。以 --kv-events-config 启动时会显示它的块。</translation>
    </message>
    <message>
        <source>SGLang. Its blocks are shown as its KV events tell.</source>
        <translation>SGLang。它的块按其 KV 事件显示。</translation>
    </message>
    <message>
        <source>Safe mode</source>
        <translation>安全模式</translation>
    </message>
    <message>
        <source>Same answer every time</source>
        <translation>每次回答相同</translation>
    </message>
    <message>
        <source>Samples</source>
        <translation>样本</translation>
    </message>
    <message>
        <source>Samples are drawn here as they come</source>
        <translation>样本得到后会画在这里</translation>
    </message>
    <message>
        <source>Sampling</source>
        <translation>采样</translation>
    </message>
    <message>
        <source>Sampling is no part of the prompt: changing it costs nothing in the cache.</source>
        <translation>采样不属于提示词：更改它不会影响缓存。</translation>
    </message>
    <message>
        <source>Sampling preset</source>
        <translation>采样预设</translation>
    </message>
    <message>
        <source>Save</source>
        <translation>保存</translation>
    </message>
    <message>
        <source>Save (Ctrl+Enter)</source>
        <translation>保存 (Ctrl+Enter)</translation>
    </message>
    <message>
        <source>Save and continue</source>
        <translation>保存并继续</translation>
    </message>
    <message>
        <source>Save as preset</source>
        <translation>保存为预设</translation>
    </message>
    <message>
        <source>Save as preset…</source>
        <translation>保存为预设…</translation>
    </message>
    <message>
        <source>Save elsewhere</source>
        <translation>保存到其他位置</translation>
    </message>
    <message>
        <source>Save elsewhere…</source>
        <translation>保存到其他位置…</translation>
    </message>
    <message>
        <source>Save idle requests</source>
        <translation>保存空闲请求</translation>
    </message>
    <message>
        <source>Save report…</source>
        <translation>保存报告…</translation>
    </message>
    <message>
        <source>Save the code</source>
        <translation>保存代码</translation>
    </message>
    <message>
        <source>Save the log</source>
        <translation>保存日志</translation>
    </message>
    <message>
        <source>Save the report</source>
        <translation>保存报告</translation>
    </message>
    <message>
        <source>Save this code as a file</source>
        <translation>将这段代码保存为文件</translation>
    </message>
    <message>
        <source>Saved to {name}.</source>
        <translation>已保存到 {name}。</translation>
    </message>
    <message>
        <source>Saves it as Markdown, HTML, or JSON with everything</source>
        <translation>保存为 Markdown、HTML，或包含全部内容的 JSON</translation>
    </message>
    <message>
        <source>Saves memory and, on a CPU, costs speed; K is rounded.</source>
        <translation>节省内存，但在 CPU 上降低速度；K 会被舍入。</translation>
    </message>
    <message>
        <source>Saves memory and, on a CPU, costs speed; V is rounded.</source>
        <translation>节省内存，但在 CPU 上降低速度；V 会被舍入。</translation>
    </message>
    <message>
        <source>Saves the differences between the map and the engine as JSON</source>
        <translation>将单元图与引擎之间的差异保存为 JSON</translation>
    </message>
    <message>
        <source>Saves the journal as JSON lines; `kvdesk replay FILE` opens it without a model</source>
        <translation>将操作记录保存为 JSON 行；`kvdesk replay FILE` 无需模型即可打开</translation>
    </message>
    <message>
        <source>Saves the lines that are shown</source>
        <translation>保存当前显示的行</translation>
    </message>
    <message>
        <source>Saves the sequence outside the cache and removes its cells</source>
        <translation>将序列保存到缓存之外，并移除其单元</translation>
    </message>
    <message>
        <source>Saves time. How long an answer takes to begin then tells whether somebody has asked something alike</source>
        <translation>节省时间。但从回答开始所需的时间可以看出是否有人问过类似的内容</translation>
    </message>
    <message>
        <source>Save…</source>
        <translation>保存…</translation>
    </message>
    <message>
        <source>Saving: {n} of {total} messages</source>
        <translation>正在保存：{n} / {total} 条消息</translation>
    </message>
    <message>
        <source>Scale: positions 0 to {scale}</source>
        <translation>刻度：位置 0 到 {scale}</translation>
    </message>
    <message>
        <source>Scatter, in runs: runs of neighbouring cells - 1, so 0 is one piece</source>
        <translation>分散程度（段数）：相邻单元的段数 - 1，因此 0 表示连成一段</translation>
    </message>
    <message>
        <source>Scroll the cell map</source>
        <translation>滚动单元图</translation>
    </message>
    <message>
        <source>Scroll the messages</source>
        <translation>滚动消息</translation>
    </message>
    <message>
        <source>Search</source>
        <translation>搜索</translation>
    </message>
    <message>
        <source>Search (Ctrl+K)</source>
        <translation>搜索 (Ctrl+K)</translation>
    </message>
    <message>
        <source>Search Hugging Face: words, or owner/name</source>
        <translation>搜索 Hugging Face：关键词，或 所有者/名称</translation>
    </message>
    <message>
        <source>Search results</source>
        <translation>搜索结果</translation>
    </message>
    <message>
        <source>Search settings</source>
        <translation>搜索设置</translation>
    </message>
    <message>
        <source>Search the chats</source>
        <translation>搜索对话</translation>
    </message>
    <message>
        <source>Search the model hub</source>
        <translation>搜索模型 hub</translation>
    </message>
    <message>
        <source>Seconds for a text</source>
        <translation>一段文本的秒数</translation>
    </message>
    <message>
        <source>Seconds of a request over one with a single id, cleaned</source>
        <translation>一个请求的秒数与单一 id（已清理）之比</translation>
    </message>
    <message>
        <source>Seconds of each request over those of the first</source>
        <translation>每个请求的秒数与第一个请求之比</translation>
    </message>
    <message>
        <source>Sections of the settings</source>
        <translation>设置的分类</translation>
    </message>
    <message>
        <source>Seed</source>
        <translation>种子</translation>
    </message>
    <message>
        <source>Select as the cursor moves</source>
        <translation>移动光标时选择</translation>
    </message>
    <message>
        <source>Selects the part of the text that does not fit</source>
        <translation>选中文本中放不下的部分</translation>
    </message>
    <message>
        <source>Send</source>
        <translation>发送</translation>
    </message>
    <message>
        <source>Send (Enter)</source>
        <translation>发送 (Enter)</translation>
    </message>
    <message>
        <source>Send now</source>
        <translation>立即发送</translation>
    </message>
    <message>
        <source>Send this queued message earlier</source>
        <translation>将这条排队的消息提前发送</translation>
    </message>
    <message>
        <source>Send this queued message later</source>
        <translation>将这条排队的消息推后发送</translation>
    </message>
    <message>
        <source>Sending the tokens of all earlier requests at each step means {theory} times the tokens of the first request; the story&apos;s seconds are {story} times those of its first.</source>
        <translation>每一步都发送之前所有请求的 token，意味着 token 数是第一个请求的 {theory} 倍；故事中的秒数是其第一个请求的 {story} 倍。</translation>
    </message>
    <message>
        <source>Sent when the answer has ended</source>
        <translation>回答结束后发送</translation>
    </message>
    <message>
        <source>Sent when the model is ready</source>
        <translation>模型就绪后发送</translation>
    </message>
    <message>
        <source>Sequence</source>
        <translation>序列</translation>
    </message>
    <message>
        <source>Sequence ids</source>
        <translation>序列 id</translation>
    </message>
    <message>
        <source>Sequence ids the context has</source>
        <translation>上下文的序列 id 数</translation>
    </message>
    <message>
        <source>Sequence to operate on</source>
        <translation>要操作的序列</translation>
    </message>
    <message>
        <source>Sequence {seq_id} does not exist: this context has sequences 0 to {last}.</source>
        <translation>序列 {seq_id} 不存在：这个上下文的序列为 0 到 {last}。</translation>
    </message>
    <message>
        <source>Sequence {seq_id} holds nothing that could be asked.</source>
        <translation>序列 {seq_id} 中没有可以查询的内容。</translation>
    </message>
    <message>
        <source>Sequence {s} ends at position X = {x} and the batch starts at Y = {y}; M-RoPE needs X &lt; Y.</source>
        <translation>序列 {s} 结束于位置 X = {x}，批次从 Y = {y} 开始；M-RoPE 要求 X &lt; Y。</translation>
    </message>
    <message>
        <source>Sequence {s} ends at position X = {x} and the batch starts at Y = {y}; it must be Y = X + 1.</source>
        <translation>序列 {s} 结束于位置 X = {x}，批次从 Y = {y} 开始；必须满足 Y = X + 1。</translation>
    </message>
    <message>
        <source>Sequences</source>
        <translation>序列</translation>
    </message>
    <message>
        <source>Sequences per cell</source>
        <translation>每个单元的序列数</translation>
    </message>
    <message>
        <source>Sequences {s} and {first} share a token of the batch, but hold different positions: {mine_first} to {mine_last} and {other_first} to {other_last}.</source>
        <translation>序列 {s} 和 {first} 共用批次中的一个 token，但位置不同：{mine_first} 到 {mine_last} 与 {other_first} 到 {other_last}。</translation>
    </message>
    <message>
        <source>Series that are drawn</source>
        <translation>绘制的曲线</translation>
    </message>
    <message>
        <source>Serve on this computer</source>
        <translation>在这台电脑上提供服务</translation>
    </message>
    <message>
        <source>Serve on this computer…</source>
        <translation>在这台电脑上提供服务…</translation>
    </message>
    <message>
        <source>Serve this model to other programs</source>
        <translation>将这个模型提供给其他程序</translation>
    </message>
    <message>
        <source>Serving {address}</source>
        <translation>正在提供服务 {address}</translation>
    </message>
    <message>
        <source>Serving {address} · {n} running</source>
        <translation>正在提供服务 {address} · {n} 个运行中</translation>
    </message>
    <message>
        <source>Serving. Programs need this address and this key.</source>
        <translation>正在提供服务。程序需要这个地址和这个密钥。</translation>
    </message>
    <message>
        <source>Setting a whole state zeroes the whole buffer first, used or not (llama_kv_cache::clear).</source>
        <translation>设置整个状态时，会先将整个缓冲区清零，无论是否使用（llama_kv_cache::clear）。</translation>
    </message>
    <message>
        <source>Setting: {name}</source>
        <translation>设置：{name}</translation>
    </message>
    <message>
        <source>Settings</source>
        <translation>设置</translation>
    </message>
    <message>
        <source>Settings (Ctrl+,)</source>
        <translation>设置 (Ctrl+,)</translation>
    </message>
    <message>
        <source>Settings of the context</source>
        <translation>上下文的设置</translation>
    </message>
    <message>
        <source>Share cached prompts between programs</source>
        <translation>程序之间共享缓存的提示词</translation>
    </message>
    <message>
        <source>Share of cells below the high-water mark that are free</source>
        <translation>高水位以下空闲单元的比例</translation>
    </message>
    <message>
        <source>Share of free cells below H, which attention still reads</source>
        <translation>H 以下空闲单元的比例，注意力仍会读取它们</translation>
    </message>
    <message>
        <source>Shared cells</source>
        <translation>共享的单元</translation>
    </message>
    <message>
        <source>Sharing a prefix</source>
        <translation>共享前缀</translation>
    </message>
    <message>
        <source>Shift by</source>
        <translation>移动</translation>
    </message>
    <message>
        <source>Short</source>
        <translation>简短</translation>
    </message>
    <message>
        <source>Shortcuts</source>
        <translation>快捷键</translation>
    </message>
    <message>
        <source>Shorten</source>
        <translation>缩短</translation>
    </message>
    <message>
        <source>Shorten it, let the oldest messages be removed, or rebuild the context with a larger n_ctx.</source>
        <translation>请缩短它，允许移除最早的消息，或用更大的 n_ctx 重建上下文。</translation>
    </message>
    <message>
        <source>Should each request get a sequence id of its own, and what happens at n_seq_max?</source>
        <translation>每个请求应当有自己的序列 id 吗？到 n_seq_max 时会怎样？</translation>
    </message>
    <message>
        <source>Show</source>
        <translation>显示</translation>
    </message>
    <message>
        <source>Show all cells</source>
        <translation>显示所有单元</translation>
    </message>
    <message>
        <source>Show all prompts and the cache map to programs</source>
        <translation>向程序显示所有提示词和单元图</translation>
    </message>
    <message>
        <source>Show everything</source>
        <translation>显示全部</translation>
    </message>
    <message>
        <source>Show less</source>
        <translation>显示更少</translation>
    </message>
    <message>
        <source>Show more</source>
        <translation>显示更多</translation>
    </message>
    <message>
        <source>Show more  ·  {n} characters</source>
        <translation>显示更多  ·  {n} 个字符</translation>
    </message>
    <message>
        <source>Show more of the inspector, or the map and four numbers</source>
        <translation>显示检查器的更多内容，或只显示单元图和四个数值</translation>
    </message>
    <message>
        <source>Show or hide the branches</source>
        <translation>显示或隐藏分支</translation>
    </message>
    <message>
        <source>Show or hide the cache inspector</source>
        <translation>显示或隐藏缓存检查器</translation>
    </message>
    <message>
        <source>Show or hide the chats</source>
        <translation>显示或隐藏对话列表</translation>
    </message>
    <message>
        <source>Show or hide the drawing times of the cell map</source>
        <translation>显示或隐藏单元图的绘制用时</translation>
    </message>
    <message>
        <source>Show the laboratory, or the chats</source>
        <translation>显示实验室或对话</translation>
    </message>
    <message>
        <source>Show the last {time}</source>
        <translation>显示最近 {time}</translation>
    </message>
    <message>
        <source>Show the page {page}</source>
        <translation>显示“{page}”页面</translation>
    </message>
    <message>
        <source>Show the page {page} of the inspector</source>
        <translation>显示检查器的“{page}”页面</translation>
    </message>
    <message>
        <source>Show the text of {name}</source>
        <translation>显示 {name} 的文本</translation>
    </message>
    <message>
        <source>Show the whole map</source>
        <translation>显示整张图</translation>
    </message>
    <message>
        <source>Show these answers side by side</source>
        <translation>并排显示这些回答</translation>
    </message>
    <message>
        <source>Shown while programs are served</source>
        <translation>提供服务时显示</translation>
    </message>
    <message>
        <source>Side by side, with as many free ones behind them</source>
        <translation>相邻，后面有同样多的空闲单元</translation>
    </message>
    <message>
        <source>Simulated by the rules of vLLM&apos;s and SGLang&apos;s source, with as many slots as there were cells. As requests a prompt comes whole and its tokens stay until their room is needed; sequences that stay keep their blocks until llama.cpp&apos;s were removed.</source>
        <translation>按 vLLM 和 SGLang 源代码的规则模拟，槽位数与单元数相同。作为请求时，提示词整段到来，其 token 保留到需要空间为止；作为保留的序列时，块一直保留到 llama.cpp 的单元被移除。</translation>
    </message>
    <message>
        <source>Six equal requests take 0.9 to 8.3 seconds, one after another: which mistake of the program does it?</source>
        <translation>六个相同的请求依次用时 0.9 到 8.3 秒：是程序的哪个错误造成的？</translation>
    </message>
    <message>
        <source>Six requests, each slower</source>
        <translation>六个请求，一个比一个慢</translation>
    </message>
    <message>
        <source>Six steps through the window</source>
        <translation>用六步了解这个窗口</translation>
    </message>
    <message>
        <source>Size</source>
        <translation>大小</translation>
    </message>
    <message>
        <source>Size of the context</source>
        <translation>上下文长度</translation>
    </message>
    <message>
        <source>Sizes are those of November 2026; the hub is asked before a download.</source>
        <translation>大小为 2026 年 11 月的数据；下载前会询问 hub。</translation>
    </message>
    <message>
        <source>Skips masked cells, and allows a quantized V</source>
        <translation>跳过被屏蔽的单元，并允许量化 V</translation>
    </message>
    <message>
        <source>Slide</source>
        <translation>滑动</translation>
    </message>
    <message>
        <source>Slow, exact: the oldest messages are removed and all others are computed again.</source>
        <translation>慢，精确：移除最早的消息，其余全部重新计算。</translation>
    </message>
    <message>
        <source>Smaller text</source>
        <translation>更小的文字</translation>
    </message>
    <message>
        <source>So far it has read {read:,} tokens and written {written:,}.</source>
        <translation>到目前为止已读取 {read:,} 个 token，写出 {written:,} 个。</translation>
    </message>
    <message>
        <source>So many positions later, or earlier with a minus: -10 closes a gap of 10 before the chosen positions</source>
        <translation>向后移动的位置数，负数表示向前：-10 可填补所选位置之前 10 个位置的空缺</translation>
    </message>
    <message>
        <source>Some layers are not rotated by position, but llama.cpp would rotate all of them.</source>
        <translation>有些层不按位置旋转，但 llama.cpp 会旋转所有层。</translation>
    </message>
    <message>
        <source>Some settings in {name} cannot be used and have their defaults: {names}.{keep}</source>
        <translation>{name} 中有些设置无法使用，已采用默认值：{names}。{keep}</translation>
    </message>
    <message>
        <source>Something unexpected went wrong with the connection.</source>
        <translation>连接发生意外错误。</translation>
    </message>
    <message>
        <source>Something unexpected went wrong: {error}</source>
        <translation>发生意外错误：{error}</translation>
    </message>
    <message>
        <source>Something unexpected went wrong: {what}</source>
        <translation>发生意外错误：{what}</translation>
    </message>
    <message>
        <source>Speed</source>
        <translation>速度</translation>
    </message>
    <message>
        <source>Speed here</source>
        <translation>在这台电脑上的速度</translation>
    </message>
    <message>
        <source>Speeds and cells are drawn here while the model works.</source>
        <translation>模型工作时，速度和单元会画在这里。</translation>
    </message>
    <message>
        <source>Starting its process…</source>
        <translation>正在启动其进程…</translation>
    </message>
    <message>
        <source>Starting…</source>
        <translation>正在启动…</translation>
    </message>
    <message>
        <source>Starts a new chat that shares these cells: they are not stored twice</source>
        <translation>新建一个共享这些单元的对话：它们不会存储两份</translation>
    </message>
    <message>
        <source>State</source>
        <translation>状态</translation>
    </message>
    <message>
        <source>State after operation {at}{tail}</source>
        <translation>操作 {at} 之后的状态{tail}</translation>
    </message>
    <message>
        <source>States of conversations on their way from memory to disk</source>
        <translation>正从内存写入磁盘的对话状态</translation>
    </message>
    <message>
        <source>States of conversations outside the cache, in memory; on disk there may be more</source>
        <translation>缓存之外、内存中的对话状态；磁盘上可能还有更多</translation>
    </message>
    <message>
        <source>Still known with a window of {n:,} tokens: {counts}.</source>
        <translation>窗口为 {n:,} 个 token 时仍然知道：{counts}。</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>停止</translation>
    </message>
    <message>
        <source>Stop (Esc)</source>
        <translation>停止 (Esc)</translation>
    </message>
    <message>
        <source>Stop reading {name}</source>
        <translation>停止读取 {name}</translation>
    </message>
    <message>
        <source>Stop serving to change these.</source>
        <translation>停止服务后才能更改这些设置。</translation>
    </message>
    <message>
        <source>Stop string reached</source>
        <translation>遇到停止字符串</translation>
    </message>
    <message>
        <source>Stop strings</source>
        <translation>停止字符串</translation>
    </message>
    <message>
        <source>Stop the answer</source>
        <translation>停止回答</translation>
    </message>
    <message>
        <source>Stop the answer (Esc); its text stays</source>
        <translation>停止回答 (Esc)；已有的文本会保留</translation>
    </message>
    <message>
        <source>Stop, or let the oldest messages of this chat go</source>
        <translation>停止，或移除这个对话最早的消息</translation>
    </message>
    <message>
        <source>Stopped</source>
        <translation>已停止</translation>
    </message>
    <message>
        <source>Stopped before it began.</source>
        <translation>在开始之前已停止。</translation>
    </message>
    <message>
        <source>Stopped by you</source>
        <translation>由你停止</translation>
    </message>
    <message>
        <source>Stopped — {name}: in {n} of {rounds} rounds, at the earliest after request {reached}, when it had taken {most} times as long as the right way takes for all.</source>
        <translation>已停止 — {name}：{rounds} 轮中的 {n} 轮，最早在第 {reached} 个请求之后，此时用时已是正确做法完成全部请求的 {most} 倍。</translation>
    </message>
    <message>
        <source>Stored {age} ago</source>
        <translation>{age} 前存储</translation>
    </message>
    <message>
        <source>Streams are not measured: {why}</source>
        <translation>没有测量 stream：{why}</translation>
    </message>
    <message>
        <source>Strength of the penalty for tokens that would go on repeating a sequence; 0 switches it off</source>
        <translation>对会继续重复某个序列的 token 的惩罚强度；0 表示关闭</translation>
    </message>
    <message>
        <source>Such as {address}</source>
        <translation>例如 {address}</translation>
    </message>
    <message>
        <source>Sum of sequences per used cell / U: 1 when nothing is shared</source>
        <translation>每个已用单元的序列数之和 / U：没有共享时为 1</translation>
    </message>
    <message>
        <source>Supposed: {supposed}</source>
        <translation>推测：{supposed}</translation>
    </message>
    <message>
        <source>Swap in</source>
        <translation>换入</translation>
    </message>
    <message>
        <source>Swap in again</source>
        <translation>重新换入</translation>
    </message>
    <message>
        <source>Swap out</source>
        <translation>换出</translation>
    </message>
    <message>
        <source>Swap out of the cache</source>
        <translation>从缓存换出</translation>
    </message>
    <message>
        <source>System prompt</source>
        <translation>系统提示词</translation>
    </message>
    <message>
        <source>System prompt and sampling of the settings, template of the model</source>
        <translation>系统提示词和采样按设置，模板由模型提供</translation>
    </message>
    <message>
        <source>System prompt of its own</source>
        <translation>单独的系统提示词</translation>
    </message>
    <message>
        <source>System prompt of new chats</source>
        <translation>新对话的系统提示词</translation>
    </message>
    <message>
        <source>System prompt of this chat</source>
        <translation>这个对话的系统提示词</translation>
    </message>
    <message>
        <source>System prompt {about}</source>
        <translation>系统提示词 {about}</translation>
    </message>
    <message>
        <source>System prompt, sampling and template of this chat, and what changing them costs</source>
        <translation>这个对话的系统提示词、采样和模板，以及更改它们的代价</translation>
    </message>
    <message>
        <source>TTFT: from sending to the first token sampled; queue, restore and K-shift included</source>
        <translation>TTFT：从发送到采样出第一个 token；包括排队、恢复和 K-shift</translation>
    </message>
    <message>
        <source>Take out of the archive</source>
        <translation>取消归档</translation>
    </message>
    <message>
        <source>Take the tour</source>
        <translation>开始导览</translation>
    </message>
    <message>
        <source>Taken from a token&apos;s logit once for each time it came recently; 0 changes nothing</source>
        <translation>token 近期每出现一次，就从其 logit 中减去一次；0 表示不改变</translation>
    </message>
    <message>
        <source>Taken from the logit of every token that came recently; 0 changes nothing</source>
        <translation>从近期出现过的每个 token 的 logit 中减去；0 表示不改变</translation>
    </message>
    <message>
        <source>Takes at most {memory_bytes} of memory and one processor core (more where threads are the question), in a process of its own. It reads about {read} tokens and writes {written}: {time}. Conversations go on, but an answer that is written meanwhile disturbs the timings.</source>
        <translation>在单独的进程中运行，最多占用 {memory_bytes} 内存和一个处理器核心（研究线程时会更多）。它读取约 {read} 个 token，写出 {written} 个：{time}。对话可以继续，但期间生成的回答会干扰计时。</translation>
    </message>
    <message>
        <source>Temperature</source>
        <translation>温度</translation>
    </message>
    <message>
        <source>Template and prompt</source>
        <translation>模板与提示词</translation>
    </message>
    <message>
        <source>Template of the model (Jinja)</source>
        <translation>模型的模板 (Jinja)</translation>
    </message>
    <message>
        <source>Test</source>
        <translation>测试</translation>
    </message>
    <message>
        <source>Text</source>
        <translation>文本</translation>
    </message>
    <message>
        <source>Text (*.txt)</source>
        <translation>文本 (*.txt)</translation>
    </message>
    <message>
        <source>Text in the size of the system</source>
        <translation>文字大小跟随系统</translation>
    </message>
    <message>
        <source>Text of the answer</source>
        <translation>回答的正文</translation>
    </message>
    <message>
        <source>Text of the question</source>
        <translation>问题的正文</translation>
    </message>
    <message>
        <source>Text, code, PDF, DOCX and RTF files, as text</source>
        <translation>文本、代码、PDF、DOCX 和 RTF 文件，作为文本</translation>
    </message>
    <message>
        <source>Text, code, PDF, DOCX, RTF (*)</source>
        <translation>文本、代码、PDF、DOCX、RTF (*)</translation>
    </message>
    <message>
        <source>Texts that end a repetition, one a line; \n is the end of a line</source>
        <translation>终止重复的文本，每行一个；\n 表示换行</translation>
    </message>
    <message>
        <source>That happened %n times in this answer.</source>
        <translation>这在这个回答中发生了 %n 次。</translation>
    </message>
    <message>
        <source>The API key cannot be kept: {why}.</source>
        <translation>无法保存 API 密钥：{why}。</translation>
    </message>
    <message>
        <source>The JSON schema cannot be used: {problem}.</source>
        <translation>JSON schema 无法使用：{problem}。</translation>
    </message>
    <message>
        <source>The JSON schema is nested too deeply.</source>
        <translation>JSON schema 嵌套太深。</translation>
    </message>
    <message>
        <source>The JSON schema is not JSON: {problem}.</source>
        <translation>JSON schema 不是有效的 JSON：{problem}。</translation>
    </message>
    <message>
        <source>The JSON schema is not an object, such as {example}.</source>
        <translation>JSON schema 不是对象，例如 {example}。</translation>
    </message>
    <message>
        <source>The JSON schema is too large, or has too many optional parts.</source>
        <translation>JSON schema 太大，或可选的部分太多。</translation>
    </message>
    <message>
        <source>The OpenAI protocol over HTTP on the same engine and cache as the window&apos;s, until Ctrl+C.</source>
        <translation>通过 HTTP 提供 OpenAI 协议，使用与窗口相同的引擎和缓存，直到按 Ctrl+C。</translation>
    </message>
    <message>
        <source>The ZIP {file} is damaged.</source>
        <translation>ZIP 文件 {file} 已损坏。</translation>
    </message>
    <message>
        <source>The address of a server begins with http:// or https://.</source>
        <translation>服务器的地址以 http:// 或 https:// 开头。</translation>
    </message>
    <message>
        <source>The answer appears here: one sentence, then its figures, plots and tables. Run measures it on the chosen model and keeps a report with all samples.</source>
        <translation>答案显示在这里：先是一句话，然后是数值、图和表格。点击“运行”会在所选模型上测量，并保存包含所有样本的报告。</translation>
    </message>
    <message>
        <source>The answer begins.</source>
        <translation>回答开始。</translation>
    </message>
    <message>
        <source>The answer ends and says that the context is full. Nothing is removed.</source>
        <translation>回答结束，并说明上下文已满。不移除任何内容。</translation>
    </message>
    <message>
        <source>The answer ends here.</source>
        <translation>回答在此结束。</translation>
    </message>
    <message>
        <source>The answer has ended.</source>
        <translation>回答已结束。</translation>
    </message>
    <message>
        <source>The answer is given anew, and its prompt was held: {counts}</source>
        <translation>重新生成回答，其提示词已在缓存中：{counts}</translation>
    </message>
    <message>
        <source>The answer is longer than kvdesk keeps.</source>
        <translation>回答超过 kvdesk 保存的长度。</translation>
    </message>
    <message>
        <source>The answer so far does not follow the grammar, so it cannot be continued.</source>
        <translation>目前为止的回答不符合语法，因此无法继续。</translation>
    </message>
    <message>
        <source>The answer was continued; in all {generated} tokens of it, and {computed} computed for prompts</source>
        <translation>这个回答被继续过；总共 {generated} 个 token，为提示词计算了 {computed} 个</translation>
    </message>
    <message>
        <source>The answer was not finished.</source>
        <translation>回答没有完成。</translation>
    </message>
    <message>
        <source>The answer was stopped.</source>
        <translation>回答已停止。</translation>
    </message>
    <message>
        <source>The application that downloaded it</source>
        <translation>下载它的应用程序</translation>
    </message>
    <message>
        <source>The batch has no tokens.</source>
        <translation>批次中没有 token。</translation>
    </message>
    <message>
        <source>The batch has {n} tokens, but n_batch is {n_batch}.</source>
        <translation>批次有 {n} 个 token，但 n_batch 为 {n_batch}。</translation>
    </message>
    <message>
        <source>The batch is empty.</source>
        <translation>批次为空。</translation>
    </message>
    <message>
        <source>The batch must have one position, one set of sequences and one flag for each token.</source>
        <translation>批次的每个 token 必须有一个位置、一组序列和一个标志。</translation>
    </message>
    <message>
        <source>The batch must have one position, one set of sequences and one flag per token.</source>
        <translation>批次的每个 token 必须有一个位置、一组序列和一个标志。</translation>
    </message>
    <message>
        <source>The beginning came from {taken}: {counts}</source>
        <translation>开头来自{taken}：{counts}</translation>
    </message>
    <message>
        <source>The best of those for 8 GB of memory; code, many languages</source>
        <translation>8 GB 内存可用的最佳模型；代码、多种语言</translation>
    </message>
    <message>
        <source>The block map needs the extra kv-events: pip install &apos;kvdesk[kv-events]&apos;.</source>
        <translation>块的图需要附加组件 kv-events：pip install &apos;kvdesk[kv-events]&apos;。</translation>
    </message>
    <message>
        <source>The built-in model is a toy of {n} M parameters. It speaks only English, and it is often wrong.</source>
        <translation>内置模型只是个 {n} M 参数的玩具：它只会英语，而且经常答错。</translation>
    </message>
    <message>
        <source>The cache as it is</source>
        <translation>缓存的现状</translation>
    </message>
    <message>
        <source>The cache has no room for the saved conversation.</source>
        <translation>缓存没有空间容纳保存的对话。</translation>
    </message>
    <message>
        <source>The cache has no room for this conversation.</source>
        <translation>缓存没有空间容纳这个对话。</translation>
    </message>
    <message>
        <source>The cache held {held} at position {position:,}, the prompt has {prompt}.</source>
        <translation>缓存在位置 {position:,} 为 {held}，提示词为 {prompt}。</translation>
    </message>
    <message>
        <source>The cache of this engine cannot be audited.</source>
        <translation>无法核对这个引擎的缓存。</translation>
    </message>
    <message>
        <source>The cache of this engine cannot be changed by hand.</source>
        <translation>无法手动更改这个引擎的缓存。</translation>
    </message>
    <message>
        <source>The cache of {name} is not followed now, and is asked for again. {why}</source>
        <translation>{name} 的缓存现在没有跟随，将再次请求。{why}</translation>
    </message>
    <message>
        <source>The cache, shared with other running answers,</source>
        <translation>与其他正在生成的回答共享的缓存</translation>
    </message>
    <message>
        <source>The cell map</source>
        <translation>单元图</translation>
    </message>
    <message>
        <source>The cell rules could not be proved on a twin of this context: {error}</source>
        <translation>无法在这个上下文的副本上证明单元规则：{error}</translation>
    </message>
    <message>
        <source>The cell rules failed their proof on this model: {mismatch}</source>
        <translation>单元规则在这个模型上没有通过证明：{mismatch}</translation>
    </message>
    <message>
        <source>The cells of its cache are shown here as they change</source>
        <translation>其缓存的单元会随着变化显示在这里</translation>
    </message>
    <message>
        <source>The cells of the cache appear here as soon as a model is open.</source>
        <translation>打开模型后，缓存的单元会显示在这里。</translation>
    </message>
    <message>
        <source>The cells of this context did not follow the rules that kvdesk knows.</source>
        <translation>这个上下文的单元没有遵循 kvdesk 所知的规则。</translation>
    </message>
    <message>
        <source>The chat goes on from this answer (Enter); the others stay as branches</source>
        <translation>对话从这个回答继续（Enter）；其他回答保留为分支</translation>
    </message>
    <message>
        <source>The chat that is open, with all its texts</source>
        <translation>当前打开的对话，包括其全部文本</translation>
    </message>
    <message>
        <source>The chat was saved to {file}.</source>
        <translation>对话已保存到 {file}。</translation>
    </message>
    <message>
        <source>The chat “{title}” cannot be read: {field} is not as it should be.</source>
        <translation>无法读取对话“{title}”：{field} 不符合要求。</translation>
    </message>
    <message>
        <source>The chat “{title}” has token ids that are none.</source>
        <translation>对话“{title}”中有无效的 token id。</translation>
    </message>
    <message>
        <source>The chat “{title}” has two messages with the same id.</source>
        <translation>对话“{title}”中有两条 id 相同的消息。</translation>
    </message>
    <message>
        <source>The chat “{title}” is damaged: its messages follow one another in a circle.</source>
        <translation>对话“{title}”已损坏：其中的消息前后相连成环。</translation>
    </message>
    <message>
        <source>The chats are open in kvdesk&apos;s window: close it, or export and import there.</source>
        <translation>这些对话已在 kvdesk 的窗口中打开：请关闭窗口，或在窗口中导出和导入。</translation>
    </message>
    <message>
        <source>The chats could not be written to {file}: {why}.</source>
        <translation>无法将对话写入 {file}：{why}。</translation>
    </message>
    <message>
        <source>The connection broke in the middle of the answer.</source>
        <translation>连接在回答中途断开。</translation>
    </message>
    <message>
        <source>The connection was lost.</source>
        <translation>连接已断开。</translation>
    </message>
    <message>
        <source>The context is made again with these settings</source>
        <translation>会用这些设置重新创建上下文</translation>
    </message>
    <message>
        <source>The context is nearly full: this message is removed from it next. Its text stays here.</source>
        <translation>上下文快满了：这条消息将是下一个被移除的。它的文本会保留在这里。</translation>
    </message>
    <message>
        <source>The context of {n:,} tokens</source>
        <translation>{n:,} 个 token 的上下文</translation>
    </message>
    <message>
        <source>The context size is 0 and the model does not say how long it was trained.</source>
        <translation>上下文长度为 0，而模型没有说明它的训练长度。</translation>
    </message>
    <message>
        <source>The context that you edited in the settings is not applied.</source>
        <translation>在设置中编辑的上下文尚未应用。</translation>
    </message>
    <message>
        <source>The context was made anew.</source>
        <translation>上下文已重新创建。</translation>
    </message>
    <message>
        <source>The context was made anew; that cannot be undone.</source>
        <translation>上下文已重新创建；这无法撤销。</translation>
    </message>
    <message>
        <source>The conversation needs {n_tokens:,} tokens, but the context holds {n_ctx:,}.</source>
        <translation>这个对话需要 {n_tokens:,} 个 token，但上下文只能容纳 {n_ctx:,} 个。</translation>
    </message>
    <message>
        <source>The conversations are open in another kvdesk.</source>
        <translation>这些对话已在另一个 kvdesk 中打开。</translation>
    </message>
    <message>
        <source>The conversations of the experiment do not have the sequences that it gave them.</source>
        <translation>实验的对话没有得到它所分配的序列。</translation>
    </message>
    <message>
        <source>The conversations were saved by a newer kvdesk (format {found}, this one knows {version}); they are left as they are. Please update kvdesk.</source>
        <translation>对话由更新版本的 kvdesk 保存（格式 {found}，当前版本支持 {version}）；它们保持原样。请更新 kvdesk。</translation>
    </message>
    <message>
        <source>The copy gets cells of its own in another stream; nothing is shared, what was there is lost.</source>
        <translation>副本在另一个 stream 中有自己的单元；不共享，那里原有的内容会丢失。</translation>
    </message>
    <message>
        <source>The copy shares the cells: it takes no memory until one of the two goes on.</source>
        <translation>副本共享单元：在两者之一继续之前不占用内存。</translation>
    </message>
    <message>
        <source>The copy shares the state until one of the two goes on.</source>
        <translation>副本共享状态，直到两者之一继续。</translation>
    </message>
    <message>
        <source>The database was damaged: {said} could not be read. The rest is here; the damaged file is {name}.</source>
        <translation>数据库已损坏：{said}无法读取。其余内容都在；损坏的文件是 {name}。</translation>
    </message>
    <message>
        <source>The database {file} cannot be read ({why}).</source>
        <translation>无法读取数据库 {file}（{why}）。</translation>
    </message>
    <message>
        <source>The database {file} is damaged.</source>
        <translation>数据库 {file} 已损坏。</translation>
    </message>
    <message>
        <source>The database {name} cannot be opened.</source>
        <translation>无法打开数据库 {name}。</translation>
    </message>
    <message>
        <source>The database {name} cannot be used.</source>
        <translation>无法使用数据库 {name}。</translation>
    </message>
    <message>
        <source>The database {name} cannot be written.</source>
        <translation>无法写入数据库 {name}。</translation>
    </message>
    <message>
        <source>The database {name} is damaged.</source>
        <translation>数据库 {name} 已损坏。</translation>
    </message>
    <message>
        <source>The disk is full: make room, then resume. What was downloaded is kept.</source>
        <translation>磁盘已满：请腾出空间后继续。已下载的内容会保留。</translation>
    </message>
    <message>
        <source>The disk is full: the conversation cannot be saved.</source>
        <translation>磁盘已满：无法保存对话。</translation>
    </message>
    <message>
        <source>The download cannot be written: {why}.</source>
        <translation>无法写入下载内容：{why}。</translation>
    </message>
    <message>
        <source>The embedded model is not installed.</source>
        <translation>没有安装内置模型。</translation>
    </message>
    <message>
        <source>The embedded model is not installed: open a GGUF file to begin.</source>
        <translation>没有安装内置模型：请打开一个 GGUF 文件开始使用。</translation>
    </message>
    <message>
        <source>The embedded model is not installed; name a GGUF file with --model FILE.</source>
        <translation>没有安装内置模型；请用 --model FILE 指定一个 GGUF 文件。</translation>
    </message>
    <message>
        <source>The embedded model is very small: see which others run well here</source>
        <translation>内置模型非常小：看看还有哪些模型能在这里流畅运行</translation>
    </message>
    <message>
        <source>The engine answers again.</source>
        <translation>引擎已恢复响应。</translation>
    </message>
    <message>
        <source>The engine did not answer any more; kvdesk ended without it.
</source>
        <translation>引擎不再响应；kvdesk 已在没有它的情况下结束。
</translation>
    </message>
    <message>
        <source>The engine did not end this answer.</source>
        <translation>引擎没有完成这个回答。</translation>
    </message>
    <message>
        <source>The engine has not answered for {silent_s:.0f} seconds: it computes, or hangs. What is shown is saved; kvdesk can be closed and started again.</source>
        <translation>引擎已有 {silent_s:.0f} 秒没有响应：它可能正在计算，也可能卡住了。显示的内容已保存；可以关闭并重新启动 kvdesk。</translation>
    </message>
    <message>
        <source>The engine has stopped</source>
        <translation>引擎已停止</translation>
    </message>
    <message>
        <source>The engine has stopped.</source>
        <translation>引擎已停止。</translation>
    </message>
    <message>
        <source>The engine has stopped. Restart kvdesk.</source>
        <translation>引擎已停止。请重新启动 kvdesk。</translation>
    </message>
    <message>
        <source>The engine of {name} was started again.</source>
        <translation>{name} 的引擎已重新启动。</translation>
    </message>
    <message>
        <source>The engine stopped unexpectedly while it did this.</source>
        <translation>引擎在执行此操作时意外停止。</translation>
    </message>
    <message>
        <source>The engine stopped unexpectedly.</source>
        <translation>引擎意外停止。</translation>
    </message>
    <message>
        <source>The engine stopped while it loaded {name}. What was open before is loaded again.</source>
        <translation>引擎在加载 {name} 时停止。正在重新加载之前打开的模型。</translation>
    </message>
    <message>
        <source>The engine&apos;s own answers</source>
        <translation>引擎自身的回答</translation>
    </message>
    <message>
        <source>The engine&apos;s process ended.</source>
        <translation>引擎的进程已结束。</translation>
    </message>
    <message>
        <source>The experiment needs more memory than there is.</source>
        <translation>实验需要的内存超过现有内存。</translation>
    </message>
    <message>
        <source>The experiment was ended because another model was opened.</source>
        <translation>因为打开了其他模型，实验已结束。</translation>
    </message>
    <message>
        <source>The experiment&apos;s process cannot be started: {strerror}.</source>
        <translation>无法启动实验的进程：{strerror}。</translation>
    </message>
    <message>
        <source>The experiment&apos;s process crashed ({name}); nothing else was touched.</source>
        <translation>实验的进程崩溃（{name}）；其他内容没有受到影响。</translation>
    </message>
    <message>
        <source>The experiment&apos;s process ended without a result (exit code {code}).</source>
        <translation>实验的进程没有给出结果就结束了（退出代码 {code}）。</translation>
    </message>
    <message>
        <source>The export was ended because kvdesk was closed.</source>
        <translation>kvdesk 已关闭，导出因此中止。</translation>
    </message>
    <message>
        <source>The file cannot be read ({why}).</source>
        <translation>无法读取文件（{why}）。</translation>
    </message>
    <message>
        <source>The file could not be read: the process that reads it ended.</source>
        <translation>无法读取文件：读取它的进程已结束。</translation>
    </message>
    <message>
        <source>The file on the hub changes while it is downloaded.</source>
        <translation>下载过程中，hub 上的文件正在变化。</translation>
    </message>
    <message>
        <source>The file on the hub has changed: the download begins again.</source>
        <translation>hub 上的文件已更改：重新开始下载。</translation>
    </message>
    <message>
        <source>The filled cells hold too little to tell ({held:.2g} MB); cells in use: {filled:,.0f} to {left:,.0f}.</source>
        <translation>已填充单元的内容太少，无法判断（{held:.2g} MB）；已用单元从 {filled:,.0f} 个变为 {left:,.0f} 个。</translation>
    </message>
    <message>
        <source>The first answer began after {first}, the second after {second}: {reused} of its {prompt} tokens were in the cache.</source>
        <translation>第一个回答在 {first} 后开始，第二个在 {second} 后开始：其 {prompt} 个 token 中有 {reused} 个在缓存中。</translation>
    </message>
    <message>
        <source>The first one</source>
        <translation>第一个</translation>
    </message>
    <message>
        <source>The first prompt finds nothing in either way: read whole it takes {ratio} times as long.</source>
        <translation>第一段提示词在两种方式下都没有可复用的内容：整段读取的用时为 {ratio} 倍。</translation>
    </message>
    <message>
        <source>The first request over that of the right way — {said}.</source>
        <translation>第一个请求与正确方式之比：{said}。</translation>
    </message>
    <message>
        <source>The first table is measured on the engine; every compaction there reads and writes the whole state. The second is simulated: which cells each way would move, read and written, and nothing is timed.</source>
        <translation>第一个表格在引擎上测量；那里的每次整理都会读写整个状态。第二个表格是模拟：各种方式会移动哪些单元（读和写），不计时。</translation>
    </message>
    <message>
        <source>The first token is the same in {same} of {n} prompts: a shorter batch adds up in another order, so that logits differ by rounding.</source>
        <translation>{n} 段提示词中有 {same} 段的首个 token 相同：较短的批次以另一种顺序相加，因此 logits 因舍入而不同。</translation>
    </message>
    <message>
        <source>The folder {folder} cannot be made: {why}. KVDESK_HOME names another.</source>
        <translation>无法创建文件夹 {folder}：{why}。可用 KVDESK_HOME 指定其他文件夹。</translation>
    </message>
    <message>
        <source>The formula with the hidden size gives {hidden:.2f} times what llama.cpp allocates, with K/V heads {kv_heads:.2f} times, kvdesk&apos;s estimate {estimate:.3f} times (each where it is worst, over {n} contexts of {layers} layers, head size {head}): {why}.</source>
        <translation>使用隐藏维度的公式得到 llama.cpp 实际分配的 {hidden:.2f} 倍，使用 K/V head 数为 {kv_heads:.2f} 倍，kvdesk 的估算为 {estimate:.3f} 倍（各取最差的一项，共 {n} 个上下文，{layers} 层，head 大小 {head}）：{why}。</translation>
    </message>
    <message>
        <source>The gain is large: {numbers}.</source>
        <translation>收益很大：{numbers}。</translation>
    </message>
    <message>
        <source>The grammar allows no token of this model here.</source>
        <translation>语法在此处不允许这个模型的任何 token。</translation>
    </message>
    <message>
        <source>The grammar has a character that is no text.</source>
        <translation>语法中有不属于文本的字符。</translation>
    </message>
    <message>
        <source>The grammar has no rule “root”, with which answers begin.</source>
        <translation>语法中没有规则“root”，而回答从它开始。</translation>
    </message>
    <message>
        <source>The grammar has no rule “{name}”, which another names.</source>
        <translation>语法中没有规则“{name}”，但有其他规则引用了它。</translation>
    </message>
    <message>
        <source>The grammar is too ambiguous: a text can be read in too many ways.</source>
        <translation>语法歧义太多：一段文本可以有太多种解读方式。</translation>
    </message>
    <message>
        <source>The grammar is too large.</source>
        <translation>语法太大。</translation>
    </message>
    <message>
        <source>The grammar’s rule “{name}” begins with itself, for ever.</source>
        <translation>语法的规则“{name}”以自身开头，没有终点。</translation>
    </message>
    <message>
        <source>The grammar’s rule “{name}” can begin in too many ways.</source>
        <translation>语法的规则“{name}”有太多种开头方式。</translation>
    </message>
    <message>
        <source>The grammar’s {text} is not one token of this model.</source>
        <translation>语法中的 {text} 不是这个模型的单个 token。</translation>
    </message>
    <message>
        <source>The graph of one ubatch; grows with n_ubatch</source>
        <translation>一个 ubatch 的计算图；随 n_ubatch 增大</translation>
    </message>
    <message>
        <source>The history does not fit into {n_cells:,} cells.</source>
        <translation>历史放不进 {n_cells:,} 个单元。</translation>
    </message>
    <message>
        <source>The hit before</source>
        <translation>上一个结果</translation>
    </message>
    <message>
        <source>The hit before (Shift+Enter, Shift+F3)</source>
        <translation>上一个结果（Shift+Enter、Shift+F3）</translation>
    </message>
    <message>
        <source>The hub gives no SHA-256 of {file}: it could not be checked.</source>
        <translation>hub 没有提供 {file} 的 SHA-256：无法校验。</translation>
    </message>
    <message>
        <source>The journal begins here.</source>
        <translation>操作记录从这里开始。</translation>
    </message>
    <message>
        <source>The journal could not be saved to {name}: {strerror}.</source>
        <translation>无法将操作记录保存到 {name}：{strerror}。</translation>
    </message>
    <message>
        <source>The journal is damaged or was not written by kvdesk.</source>
        <translation>操作记录已损坏，或不是由 kvdesk 写入。</translation>
    </message>
    <message>
        <source>The journal is of a newer kvdesk.</source>
        <translation>操作记录来自更新版本的 kvdesk。</translation>
    </message>
    <message>
        <source>The journal shows states from operation {start:,} to {last:,}. Older ones were dropped to stay within its memory.</source>
        <translation>操作记录显示操作 {start:,} 到 {last:,} 的状态。更早的已舍弃，以免超出其内存。</translation>
    </message>
    <message>
        <source>The key could not be kept: {why}. It is used until kvdesk is closed.</source>
        <translation>无法保存密钥：{why}。它在 kvdesk 关闭之前有效。</translation>
    </message>
    <message>
        <source>The laboratory</source>
        <translation>实验室</translation>
    </message>
    <message>
        <source>The largest context for which there is free memory now, and the type of K and V</source>
        <translation>当前空闲内存可容纳的最大上下文，以及 K 和 V 的类型</translation>
    </message>
    <message>
        <source>The largest that fits has {largest:,} cells.{more}</source>
        <translation>可容纳的最大上下文为 {largest:,} 个单元。{more}</translation>
    </message>
    <message>
        <source>The last request over the first: {said}.</source>
        <translation>最后一个请求与第一个之比：{said}。</translation>
    </message>
    <message>
        <source>The least time to move cells, over what kvdesk takes for the whole operation: {said}.</source>
        <translation>移动单元的最短用时与 kvdesk 整个操作的用时之比：{said}。</translation>
    </message>
    <message>
        <source>The logit bias names token {token}, and this model has {n:,} tokens.</source>
        <translation>logit 偏置使用了 token {token}，而这个模型有 {n:,} 个 token。</translation>
    </message>
    <message>
        <source>The long form: more rounds and larger contexts</source>
        <translation>详细形式：轮次更多，上下文更大</translation>
    </message>
    <message>
        <source>The longest interval of empty cells</source>
        <translation>最长的连续空单元区间</translation>
    </message>
    <message>
        <source>The longest of them</source>
        <translation>其中最长的</translation>
    </message>
    <message>
        <source>The map follows what happens. Choose an operation to see the map after it.</source>
        <translation>单元图会跟随变化。选择一次操作可查看其后的单元图。</translation>
    </message>
    <message>
        <source>The memory is without saved states and undo, which fill up to limits of their own, and without the first {warm:.0%} of the time.</source>
        <translation>内存不包括保存的状态和撤销（它们会增长到各自的上限），也不包括最初 {warm:.0%} 的时间。</translation>
    </message>
    <message>
        <source>The message has {n_characters:,} characters, far more than the {n_ctx:,} tokens of the context hold.</source>
        <translation>消息有 {n_characters:,} 个字符，远超过上下文能容纳的 {n_ctx:,} 个 token。</translation>
    </message>
    <message>
        <source>The model called a tool, which kvdesk has not offered.</source>
        <translation>模型调用了工具，而 kvdesk 没有提供工具。</translation>
    </message>
    <message>
        <source>The model could not be opened.</source>
        <translation>无法打开模型。</translation>
    </message>
    <message>
        <source>The model goes on where your text ends; what is before your change stays in the cache</source>
        <translation>模型从你的文本结尾处继续；你的改动之前的内容留在缓存中</translation>
    </message>
    <message>
        <source>The model has ended this answer by itself.</source>
        <translation>模型自行结束了这个回答。</translation>
    </message>
    <message>
        <source>The model no longer sees this message. Its text stays here.</source>
        <translation>模型不再看到这条消息。它的文本会保留在这里。</translation>
    </message>
    <message>
        <source>The model&apos;s chat template</source>
        <translation>模型的对话模板</translation>
    </message>
    <message>
        <source>The model&apos;s chat template cannot be used, so a plain one is: {template_problem}</source>
        <translation>无法使用模型的对话模板，因此使用一个简单的模板：{template_problem}</translation>
    </message>
    <message>
        <source>The name of a preset has 1 to {n} characters.</source>
        <translation>预设名称应有 1 到 {n} 个字符。</translation>
    </message>
    <message>
        <source>The name of its file</source>
        <translation>其文件的名称</translation>
    </message>
    <message>
        <source>The new answer becomes a branch beside the one that is there</source>
        <translation>新的回答会成为现有回答旁边的一个分支</translation>
    </message>
    <message>
        <source>The next hit</source>
        <translation>下一个结果</translation>
    </message>
    <message>
        <source>The next hit (Enter, F3)</source>
        <translation>下一个结果（Enter、F3）</translation>
    </message>
    <message>
        <source>The number of sequences must be between 1 and {max_seq}, not {n_seq_max}.</source>
        <translation>序列数必须在 1 到 {max_seq} 之间，而不是 {n_seq_max}。</translation>
    </message>
    <message>
        <source>The oldest messages cannot be removed: {why}</source>
        <translation>无法移除最早的消息：{why}</translation>
    </message>
    <message>
        <source>The output cannot be written: {strerror}.
</source>
        <translation>无法写入输出：{strerror}。
</translation>
    </message>
    <message>
        <source>The page is being made…</source>
        <translation>正在准备页面…</translation>
    </message>
    <message>
        <source>The parts are llama.cpp&apos;s own calls between memory that was used before, and numpy&apos;s take. Before each of them, and before kvdesk&apos;s whole, the processor&apos;s caches were filled with other things.</source>
        <translation>各部分是 llama.cpp 自身的调用（在使用过的内存之间）以及 numpy 的 take。在每个部分和 kvdesk 的整个操作之前，处理器的缓存都填入了其他内容。</translation>
    </message>
    <message>
        <source>The perplexity of the text after the first overflow is {ring} times that of sliding in a ring that keeps nothing of the beginning; sliding has {moved} times that of reading again, which takes {time} times as long.</source>
        <translation>首次溢出之后文本的困惑度，不保留开头的环是滑动的 {ring} 倍；滑动是重新读取的 {moved} 倍，而重新读取的用时为 {time} 倍。</translation>
    </message>
    <message>
        <source>The positions of sequence {s} decrease.</source>
        <translation>序列 {s} 的位置在减小。</translation>
    </message>
    <message>
        <source>The positions of sequence {s} in the batch have a gap.</source>
        <translation>批次中序列 {s} 的位置不连续。</translation>
    </message>
    <message>
        <source>The preset cannot be saved ({why}).</source>
        <translation>无法保存预设（{why}）。</translation>
    </message>
    <message>
        <source>The preset cannot be used: {where}: {problem}.</source>
        <translation>无法使用预设：{where}：{problem}。</translation>
    </message>
    <message>
        <source>The preset was saved to {file}.</source>
        <translation>预设已保存到 {file}。</translation>
    </message>
    <message>
        <source>The process that reads the file cannot be started: {why}.</source>
        <translation>无法启动读取文件的进程：{why}。</translation>
    </message>
    <message>
        <source>The process that renders chat templates could not be started.</source>
        <translation>无法启动渲染对话模板的进程。</translation>
    </message>
    <message>
        <source>The prompt differs from what was held: {counts}</source>
        <translation>提示词与缓存中的内容不同：{counts}</translation>
    </message>
    <message>
        <source>The prompt has the token {token}, and this model has {n:,} tokens.</source>
        <translation>提示词中有 token {token}，而这个模型有 {n:,} 个 token。</translation>
    </message>
    <message>
        <source>The prompt is empty.</source>
        <translation>提示词为空。</translation>
    </message>
    <message>
        <source>The prompt of this chat</source>
        <translation>这个对话的提示词</translation>
    </message>
    <message>
        <source>The prompt of this chat appears here once a model is open.</source>
        <translation>打开模型后，这里会显示这个对话的提示词。</translation>
    </message>
    <message>
        <source>The prompt of this chat has {n} tokens, {cached} of them in the cache.</source>
        <translation>这个对话的提示词有 {n} 个 token，其中 {cached} 个在缓存中。</translation>
    </message>
    <message>
        <source>The proof ran out of time: {found}</source>
        <translation>证明超时：{found}</translation>
    </message>
    <message>
        <source>The question with all versions of its answer</source>
        <translation>问题及其回答的所有版本</translation>
    </message>
    <message>
        <source>The range is empty: its end lies before its start.</source>
        <translation>范围为空：终点在起点之前。</translation>
    </message>
    <message>
        <source>The remaining messages cannot be removed.</source>
        <translation>其余的消息无法移除。</translation>
    </message>
    <message>
        <source>The report could not be saved to {name}: {strerror}.</source>
        <translation>无法将报告保存到 {name}：{strerror}。</translation>
    </message>
    <message>
        <source>The report could not be written to {path}: {why}.</source>
        <translation>无法将报告写入 {path}：{why}。</translation>
    </message>
    <message>
        <source>The report could not be written: {why}.</source>
        <translation>无法写入报告：{why}。</translation>
    </message>
    <message>
        <source>The report is not there any more: {file}</source>
        <translation>报告已不存在：{file}</translation>
    </message>
    <message>
        <source>The report is {page}</source>
        <translation>报告位于 {page}</translation>
    </message>
    <message>
        <source>The report was saved to {name}.</source>
        <translation>报告已保存到 {name}。</translation>
    </message>
    <message>
        <source>The request is being answered: why so much was in the cache is said when it has ended.</source>
        <translation>正在回答这个请求：结束后会说明为什么有这么多在缓存中。</translation>
    </message>
    <message>
        <source>The rules of the map are those of llama-cpp-python {mirrored_binding} (llama.cpp {mirrored_commit}); this is {version}. The engine&apos;s own numbers agree so far, but where each cell lies is not proved.</source>
        <translation>单元图采用 llama-cpp-python {mirrored_binding}（llama.cpp {mirrored_commit}）的规则；当前版本是 {version}。目前引擎自身的数值一致，但每个单元的位置没有得到证明。</translation>
    </message>
    <message>
        <source>The same answer, bit for bit, as if the prompt was computed without the cache. Off, answers may differ by rounding. Prompts are read a third slower, one thread writes answers (0.7 of the speed on two cores), and with most weights each turn reads the last answer again</source>
        <translation>回答与不用缓存计算提示词时逐位相同。关闭时，回答可能因舍入而不同。读取提示词慢三分之一，由一个线程生成回答（双核上为 0.7 倍速度），并且对多数权重，每一轮都会重新读取上一个回答</translation>
    </message>
    <message>
        <source>The same bytes, moved in other ways</source>
        <translation>相同的字节，以其他方式移动</translation>
    </message>
    <message>
        <source>The same history in each cache (medians over the days)</source>
        <translation>各缓存中的同一段历史（各天的中位数）</translation>
    </message>
    <message>
        <source>The same text became other tokens: {counts}</source>
        <translation>相同的文本变成了不同的 token：{counts}</translation>
    </message>
    <message>
        <source>The samplers work in this order; one that is not ticked does nothing</source>
        <translation>采样器按这个顺序工作；没有勾选的不起作用</translation>
    </message>
    <message>
        <source>The saved state has positions that llama.cpp could never remove again.</source>
        <translation>保存的状态中有 llama.cpp 无法再移除的位置。</translation>
    </message>
    <message>
        <source>The saved state has {n_stream} streams, the context {n_stream2}.</source>
        <translation>保存的状态有 {n_stream} 个 stream，上下文有 {n_stream2} 个。</translation>
    </message>
    <message>
        <source>The saved state has {n} cells, but a stream has {size}.</source>
        <translation>保存的状态有 {n} 个单元，但一个 stream 只有 {size} 个。</translation>
    </message>
    <message>
        <source>The saved state holds {kind} of another type than this context.</source>
        <translation>保存的状态中 {kind} 的类型与这个上下文不同。</translation>
    </message>
    <message>
        <source>The saved state is damaged or cut off.</source>
        <translation>保存的状态已损坏或不完整。</translation>
    </message>
    <message>
        <source>The saved state is damaged.</source>
        <translation>保存的状态已损坏。</translation>
    </message>
    <message>
        <source>The saved state is not of the cache that was planned.</source>
        <translation>保存的状态不属于所计划的缓存。</translation>
    </message>
    <message>
        <source>The saved state is not of the cells that were planned.</source>
        <translation>保存的状态不属于所计划的单元。</translation>
    </message>
    <message>
        <source>The saved state is of a context with more than {n_seq_max} sequences.</source>
        <translation>保存的状态来自序列多于 {n_seq_max} 个的上下文。</translation>
    </message>
    <message>
        <source>The saved state is of a {architecture} model, not of {architecture2}.</source>
        <translation>保存的状态属于 {architecture} 模型，而不是 {architecture2}。</translation>
    </message>
    <message>
        <source>The saved state of this conversation is damaged and was forgotten: at its next turn the conversation is read again from its text.</source>
        <translation>这个对话保存的状态已损坏并被丢弃：下一轮会根据文本重新读取这个对话。</translation>
    </message>
    <message>
        <source>The saved state was made with flash attention switched the other way.</source>
        <translation>保存的状态是在 flash attention 开关相反时生成的。</translation>
    </message>
    <message>
        <source>The server began again with the first byte.</source>
        <translation>服务器从第一个字节重新开始发送。</translation>
    </message>
    <message>
        <source>The server cannot be reached.</source>
        <translation>无法连接服务器。</translation>
    </message>
    <message>
        <source>The server cannot be reached: it does not answer.</source>
        <translation>无法连接服务器：它没有应答。</translation>
    </message>
    <message>
        <source>The server cannot listen at {host}, port {port}: {why}. Choose another port, or another address.</source>
        <translation>服务器无法在 {host} 的端口 {port} 上监听：{why}。请选择其他端口或其他地址。</translation>
    </message>
    <message>
        <source>The server did not start.</source>
        <translation>服务器没有启动。</translation>
    </message>
    <message>
        <source>The server has ended the answer.</source>
        <translation>服务器结束了回答。</translation>
    </message>
    <message>
        <source>The server has ended the connection.</source>
        <translation>服务器断开了连接。</translation>
    </message>
    <message>
        <source>The server has failed ({status}).</source>
        <translation>服务器发生错误（{status}）。</translation>
    </message>
    <message>
        <source>The server has no model {model}; it has {names}.</source>
        <translation>服务器没有模型 {model}；它有 {names}。</translation>
    </message>
    <message>
        <source>The server has said nothing for {n:g} seconds.</source>
        <translation>服务器已有 {n:g} 秒没有任何输出。</translation>
    </message>
    <message>
        <source>The server needs a key ({status}). Enter it where you connect.</source>
        <translation>服务器需要密钥（{status}）。请在连接时输入。</translation>
    </message>
    <message>
        <source>The server refuses the key ({status}).</source>
        <translation>服务器拒绝了密钥（{status}）。</translation>
    </message>
    <message>
        <source>The server refuses the request ({status}).</source>
        <translation>服务器拒绝了请求（{status}）。</translation>
    </message>
    <message>
        <source>The server sent something that is no answer.</source>
        <translation>服务器发送的内容不是有效的回答。</translation>
    </message>
    <message>
        <source>The server takes no more requests now (429).</source>
        <translation>服务器现在不再接受请求（429）。</translation>
    </message>
    <message>
        <source>The server was started again {n} times meanwhile.</source>
        <translation>其间服务器重新启动了 {n} 次。</translation>
    </message>
    <message>
        <source>The server&apos;s certificate is not valid, so nothing was sent.</source>
        <translation>服务器的证书无效，因此没有发送任何内容。</translation>
    </message>
    <message>
        <source>The server&apos;s content filter has ended it.</source>
        <translation>服务器的内容过滤器结束了回答。</translation>
    </message>
    <message>
        <source>The server&apos;s own figure</source>
        <translation>服务器自己的数值</translation>
    </message>
    <message>
        <source>The settings are too large to be saved: delete a preset.</source>
        <translation>设置太大，无法保存：请删除一个预设。</translation>
    </message>
    <message>
        <source>The settings cannot be saved ({why}).</source>
        <translation>无法保存设置（{why}）。</translation>
    </message>
    <message>
        <source>The settings in {name} are damaged; defaults are used.{keep}</source>
        <translation>{name} 中的设置已损坏；使用默认值。{keep}</translation>
    </message>
    <message>
        <source>The settings in {name} cannot be read ({strerror}); defaults are used.</source>
        <translation>无法读取 {name} 中的设置（{strerror}）；使用默认值。</translation>
    </message>
    <message>
        <source>The short form: within three minutes</source>
        <translation>简短形式：三分钟以内</translation>
    </message>
    <message>
        <source>The size formula</source>
        <translation>内存公式</translation>
    </message>
    <message>
        <source>The sliding window before the first new token was no longer in the cache: {counts}</source>
        <translation>第一个新 token 之前的滑动窗口已不在缓存中：{counts}</translation>
    </message>
    <message>
        <source>The small model that comes with kvdesk answers on this computer</source>
        <translation>用 kvdesk 自带的小模型在这台电脑上回答</translation>
    </message>
    <message>
        <source>The step {step!r} failed: {said}</source>
        <translation>步骤 {step!r} 失败：{said}</translation>
    </message>
    <message>
        <source>The temperature moves by so much up and down, with how sure the model is; 0 keeps it fixed</source>
        <translation>温度随模型的确定程度上下变动的幅度；0 表示固定</translation>
    </message>
    <message>
        <source>The template leaves out earlier reasoning, so the prompt is another: {counts}</source>
        <translation>模板省略了之前的思考过程，因此提示词不同：{counts}</translation>
    </message>
    <message>
        <source>The template of the model appears here once one is open.</source>
        <translation>打开模型后，这里会显示模型的模板。</translation>
    </message>
    <message>
        <source>The template renders something else ({template}): {counts}</source>
        <translation>模板生成了不同的内容（{template}）：{counts}</translation>
    </message>
    <message>
        <source>The template says, as long as you write nothing here:</source>
        <translation>如果这里留空，模板会写：</translation>
    </message>
    <message>
        <source>The text has characters that are no text.</source>
        <translation>文本中有无效的字符。</translation>
    </message>
    <message>
        <source>The text has more than {n:,} characters.</source>
        <translation>文本超过 {n:,} 个字符。</translation>
    </message>
    <message>
        <source>The text has more than {repeated:,} blanks or digits in a row, and this model&apos;s tokenizer would take far too long for them: break them up.</source>
        <translation>文本中有超过 {repeated:,} 个连续的空格或数字，这个模型的分词器处理它们会用时过长：请将它们分开。</translation>
    </message>
    <message>
        <source>The text has {n:,} tokens and a chunk takes {n_chunk:,}: choose a smaller one.</source>
        <translation>文本有 {n:,} 个 token，而一个分块需要 {n_chunk:,} 个：请选择更小的分块。</translation>
    </message>
    <message>
        <source>The text has {n:,} tokens, and a window of {window:,} needs twice as many: choose a smaller one.</source>
        <translation>文本有 {n:,} 个 token，而 {window:,} 的窗口需要两倍：请选择更小的窗口。</translation>
    </message>
    <message>
        <source>The texts stay.</source>
        <translation>文本会保留。</translation>
    </message>
    <message>
        <source>The token cannot be kept: {why}.</source>
        <translation>无法保存 token：{why}。</translation>
    </message>
    <message>
        <source>The trial of the model could not be started.</source>
        <translation>无法开始模型的试运行。</translation>
    </message>
    <message>
        <source>The turns of one conversation through the same engine as the window, on standard output.</source>
        <translation>用与窗口相同的引擎进行一个对话，各轮回答写到标准输出。</translation>
    </message>
    <message>
        <source>The verdicts are the same.</source>
        <translation>结论相同。</translation>
    </message>
    <message>
        <source>The verdicts differ.</source>
        <translation>结论不同。</translation>
    </message>
    <message>
        <source>The version after this one</source>
        <translation>下一个版本</translation>
    </message>
    <message>
        <source>The version before this one</source>
        <translation>上一个版本</translation>
    </message>
    <message>
        <source>The way there is not encrypted: whoever is in between can read chats and key.</source>
        <translation>途中没有加密：中间的任何人都可以读取对话和密钥。</translation>
    </message>
    <message>
        <source>The whole state is saved and restored; used cells move to the front, shared ones stay shared.</source>
        <translation>整个状态会保存并恢复；已用单元移到前面，共享的单元仍然共享。</translation>
    </message>
    <message>
        <source>The window cache is smaller than the base cache (swa_full is off): llama.cpp does not shift.</source>
        <translation>窗口缓存小于基础缓存（swa_full 已关闭）：llama.cpp 不会移动位置。</translation>
    </message>
    <message>
        <source>Their K and V are saved and put back into the new context: nothing is read again</source>
        <translation>保存其 K 和 V 并放入新的上下文：无需重新读取</translation>
    </message>
    <message>
        <source>Theme</source>
        <translation>主题</translation>
    </message>
    <message>
        <source>Theme: as the system has it</source>
        <translation>主题：跟随系统</translation>
    </message>
    <message>
        <source>Theme: dark</source>
        <translation>主题：深色</translation>
    </message>
    <message>
        <source>Theme: light</source>
        <translation>主题：浅色</translation>
    </message>
    <message>
        <source>There are more chats of yesterday than sequences: choose a larger number of sequences.</source>
        <translation>昨天的对话多于序列数：请选择更多的序列。</translation>
    </message>
    <message>
        <source>There are more than {n:,} biases.</source>
        <translation>偏置超过 {n:,} 个。</translation>
    </message>
    <message>
        <source>There are more than {n} sequence breakers.</source>
        <translation>序列断点超过 {n} 个。</translation>
    </message>
    <message>
        <source>There are more than {n} stop strings.</source>
        <translation>停止字符串超过 {n} 个。</translation>
    </message>
    <message>
        <source>There are no chats yet.</source>
        <translation>还没有对话。</translation>
    </message>
    <message>
        <source>There are no logits for entry {row} of the last batch.</source>
        <translation>上一个批次的第 {row} 项没有 logits。</translation>
    </message>
    <message>
        <source>There are {names}.</source>
        <translation>可用的有：{names}。</translation>
    </message>
    <message>
        <source>There are {n} presets already; delete one first.</source>
        <translation>已有 {n} 个预设；请先删除一个。</translation>
    </message>
    <message>
        <source>There is another preset called “{name}”.</source>
        <translation>已有另一个名为“{name}”的预设。</translation>
    </message>
    <message>
        <source>There is no K: the memory is recurrent.</source>
        <translation>没有 K：该记忆是循环的。</translation>
    </message>
    <message>
        <source>There is no V of its own in this memory.</source>
        <translation>该记忆没有单独的 V。</translation>
    </message>
    <message>
        <source>There is no chat yet.</source>
        <translation>还没有对话。</translation>
    </message>
    <message>
        <source>There is no display (neither DISPLAY nor WAYLAND_DISPLAY is set). {without_display}</source>
        <translation>没有显示（DISPLAY 和 WAYLAND_DISPLAY 都没有设置）。{without_display}</translation>
    </message>
    <message>
        <source>There is no display to show the journal on.</source>
        <translation>没有显示可用来显示操作记录。</translation>
    </message>
    <message>
        <source>There is no display: run it under Xvfb, or with QT_QPA_PLATFORM=offscreen.</source>
        <translation>没有显示：请在 Xvfb 下运行，或设置 QT_QPA_PLATFORM=offscreen。</translation>
    </message>
    <message>
        <source>There is no experiment {name}. {advice}</source>
        <translation>没有实验 {name}。{advice}</translation>
    </message>
    <message>
        <source>There is no file {given}.</source>
        <translation>文件 {given} 不存在。</translation>
    </message>
    <message>
        <source>There is no file {path}.</source>
        <translation>文件 {path} 不存在。</translation>
    </message>
    <message>
        <source>There is no memory for a state of {mb:,.0f} MB.</source>
        <translation>没有内存可容纳 {mb:,.0f} MB 的状态。</translation>
    </message>
    <message>
        <source>There is no mismatch to report: the map has agreed with the engine.</source>
        <translation>没有可报告的不一致：单元图与引擎一致。</translation>
    </message>
    <message>
        <source>There is no parameter {key}; there are: {names}.</source>
        <translation>没有参数 {key}；可用的参数：{names}。</translation>
    </message>
    <message>
        <source>There is no such model or address on the server (404).</source>
        <translation>服务器上没有这个模型或地址（404）。</translation>
    </message>
    <message>
        <source>There is not enough memory to tokenize the text.</source>
        <translation>内存不足，无法对文本分词。</translation>
    </message>
    <message>
        <source>There is nothing to cure: after a compaction a token takes {compacted:.2g} of its time.</source>
        <translation>没有需要改善的地方：整理后一个 token 的用时为原来的 {compacted:.2g} 倍。</translation>
    </message>
    <message>
        <source>There is nothing to undo.</source>
        <translation>没有可以撤销的操作。</translation>
    </message>
    <message>
        <source>There is room.</source>
        <translation>有空间。</translation>
    </message>
    <message>
        <source>There was nothing to compact.</source>
        <translation>没有可以整理的内容。</translation>
    </message>
    <message>
        <source>They are prefilled one after another, with progress and Cancel</source>
        <translation>它们会逐个预填充，显示进度并可取消</translation>
    </message>
    <message>
        <source>They may hold your name. Otherwise only the names of files are written.</source>
        <translation>其中可能含有你的姓名。不勾选则只写入文件名。</translation>
    </message>
    <message>
        <source>Thinking</source>
        <translation>思考</translation>
    </message>
    <message>
        <source>Thinking…</source>
        <translation>正在思考…</translation>
    </message>
    <message>
        <source>This ZIP has no file of chats, such as conversations.json.</source>
        <translation>这个 ZIP 中没有对话文件，例如 conversations.json。</translation>
    </message>
    <message>
        <source>This ZIP has too many files.</source>
        <translation>这个 ZIP 中的文件太多。</translation>
    </message>
    <message>
        <source>This ZIP is damaged.</source>
        <translation>这个 ZIP 已损坏。</translation>
    </message>
    <message>
        <source>This ZIP is locked with a password.</source>
        <translation>这个 ZIP 受密码保护。</translation>
    </message>
    <message>
        <source>This ZIP is packed in a way that kvdesk does not read.</source>
        <translation>kvdesk 无法读取这个 ZIP 的压缩方式。</translation>
    </message>
    <message>
        <source>This answer repeats itself.</source>
        <translation>这个回答在重复自己。</translation>
    </message>
    <message>
        <source>This answer repeats itself. Esc stops it.</source>
        <translation>这个回答在重复自己。按 Esc 停止。</translation>
    </message>
    <message>
        <source>This chat has no answer to continue.</source>
        <translation>这个对话没有可以继续的回答。</translation>
    </message>
    <message>
        <source>This chat has no cells in the cache.</source>
        <translation>这个对话在缓存中没有单元。</translation>
    </message>
    <message>
        <source>This chat has no messages.</source>
        <translation>这个对话没有消息。</translation>
    </message>
    <message>
        <source>This chat has no question to edit.</source>
        <translation>这个对话没有可以编辑的问题。</translation>
    </message>
    <message>
        <source>This chat has one branch only.</source>
        <translation>这个对话只有一个分支。</translation>
    </message>
    <message>
        <source>This chat has {n} characters. The prompt is shown, and a template checked, up to {most}.</source>
        <translation>这个对话有 {n} 个字符。提示词的显示和模板的检查最多支持 {most} 个字符。</translation>
    </message>
    <message>
        <source>This chat is not swapped out.</source>
        <translation>这个对话没有被换出。</translation>
    </message>
    <message>
        <source>This chat&apos;s own template</source>
        <translation>这个对话单独的模板</translation>
    </message>
    <message>
        <source>This chat: forget its cells</source>
        <translation>这个对话：丢弃其单元</translation>
    </message>
    <message>
        <source>This chat: {operation}</source>
        <translation>这个对话：{operation}</translation>
    </message>
    <message>
        <source>This command is for developers: it runs in a checkout of kvdesk&apos;s source only.</source>
        <translation>此命令供开发者使用：只能在 kvdesk 的源代码目录中运行。</translation>
    </message>
    <message>
        <source>This context was not recorded, or its cells did not follow the rules that kvdesk knows.</source>
        <translation>这个上下文没有被记录，或其单元没有遵循 kvdesk 所知的规则。</translation>
    </message>
    <message>
        <source>This conversation has nothing in the cache that could be verified.</source>
        <translation>这个对话在缓存中没有可以验证的内容。</translation>
    </message>
    <message>
        <source>This conversation has nothing in the cache.</source>
        <translation>这个对话在缓存中没有内容。</translation>
    </message>
    <message>
        <source>This conversation is not swapped out.</source>
        <translation>这个对话没有被换出。</translation>
    </message>
    <message>
        <source>This engine cannot continue an answer.</source>
        <translation>这个引擎不能继续回答。</translation>
    </message>
    <message>
        <source>This engine does not chat.</source>
        <translation>这个引擎不能对话。</translation>
    </message>
    <message>
        <source>This engine does not say what a message would cost.</source>
        <translation>这个引擎不说明一条消息的代价。</translation>
    </message>
    <message>
        <source>This engine does not say what that costs.</source>
        <translation>这个引擎不说明其代价。</translation>
    </message>
    <message>
        <source>This engine does not show its cells.</source>
        <translation>这个引擎不显示其单元。</translation>
    </message>
    <message>
        <source>This engine does not tell of blocks.</source>
        <translation>这个引擎不提供块的信息。</translation>
    </message>
    <message>
        <source>This engine makes its context by itself.</source>
        <translation>这个引擎自行创建上下文。</translation>
    </message>
    <message>
        <source>This engine manages its cache by itself.</source>
        <translation>这个引擎自行管理缓存。</translation>
    </message>
    <message>
        <source>This engine renders prompts by itself: its chat template cannot be seen or changed.</source>
        <translation>这个引擎自行渲染提示词：其对话模板无法查看或更改。</translation>
    </message>
    <message>
        <source>This file has more than {chats} chats or {messages} messages.</source>
        <translation>这个文件中的对话超过 {chats} 个，或消息超过 {messages} 条。</translation>
    </message>
    <message>
        <source>This file has more than {n} MB of chats; kvdesk imports no more at once.</source>
        <translation>这个文件中的对话超过 {n} MB；kvdesk 一次不导入更多。</translation>
    </message>
    <message>
        <source>This file is damaged, or is not JSON.</source>
        <translation>这个文件已损坏，或不是 JSON。</translation>
    </message>
    <message>
        <source>This file is no export that kvdesk knows: it reads its own, ChatGPT&apos;s, LM Studio&apos;s, llama.cpp&apos;s, Open WebUI&apos;s and Jan&apos;s.</source>
        <translation>这不是 kvdesk 认识的导出文件：它可以读取自己的以及 ChatGPT、LM Studio、llama.cpp、Open WebUI 和 Jan 的导出文件。</translation>
    </message>
    <message>
        <source>This file is not JSON.</source>
        <translation>这个文件不是 JSON。</translation>
    </message>
    <message>
        <source>This file is not a preset of kvdesk.</source>
        <translation>这个文件不是 kvdesk 的预设。</translation>
    </message>
    <message>
        <source>This file is not a preset: it is not JSON.</source>
        <translation>这个文件不是预设：它不是 JSON。</translation>
    </message>
    <message>
        <source>This file is not readable: its JSON is nested too deeply.</source>
        <translation>无法读取这个文件：其 JSON 嵌套太深。</translation>
    </message>
    <message>
        <source>This file is not text in UTF-8, UTF-16 or UTF-32.</source>
        <translation>这个文件不是 UTF-8、UTF-16 或 UTF-32 文本。</translation>
    </message>
    <message>
        <source>This file is too large for a preset.</source>
        <translation>这个文件作为预设太大。</translation>
    </message>
    <message>
        <source>This file needs more memory to be read than kvdesk gives it.</source>
        <translation>读取这个文件所需的内存超过 kvdesk 允许的范围。</translation>
    </message>
    <message>
        <source>This file says that kvdesk wrote it, but not in which version of the format.</source>
        <translation>这个文件注明由 kvdesk 写入，但没有注明格式的版本。</translation>
    </message>
    <message>
        <source>This file was written by a newer kvdesk (format {found}, this one knows {known}).</source>
        <translation>这个文件由更新版本的 kvdesk 写入（格式 {found}，当前版本支持 {known}）。</translation>
    </message>
    <message>
        <source>This is no address of a server.</source>
        <translation>这不是服务器的地址。</translation>
    </message>
    <message>
        <source>This is not a kvdesk journal.</source>
        <translation>这不是 kvdesk 的操作记录。</translation>
    </message>
    <message>
        <source>This is not the name of a file.</source>
        <translation>这不是文件名。</translation>
    </message>
    <message>
        <source>This is not the saved state of a sequence.</source>
        <translation>这不是一个序列的保存状态。</translation>
    </message>
    <message>
        <source>This journal is of a recurrent model: it has no cells to tell a history by.</source>
        <translation>这个操作记录来自循环模型：没有可用来还原历史的单元。</translation>
    </message>
    <message>
        <source>This journal is of {cells:,} cells and {chats} sequences: choose as many (cells, chats).</source>
        <translation>这个操作记录有 {cells:,} 个单元和 {chats} 个序列：请选择同样多的值（cells、chats）。</translation>
    </message>
    <message>
        <source>This key works in the cell map.</source>
        <translation>这个键用于单元图。</translation>
    </message>
    <message>
        <source>This key works in the graphs.</source>
        <translation>这个键用于图表。</translation>
    </message>
    <message>
        <source>This key works in the list of chats.</source>
        <translation>这个键用于对话列表。</translation>
    </message>
    <message>
        <source>This key works in the message box.</source>
        <translation>这个键用于消息输入框。</translation>
    </message>
    <message>
        <source>This kind of memory is not mirrored.</source>
        <translation>kvdesk 没有这种记忆的镜像。</translation>
    </message>
    <message>
        <source>This menu has the choice: stop, or let the oldest messages go.</source>
        <translation>在这个菜单中选择届时如何处理：停止，或移除最早的消息。</translation>
    </message>
    <message>
        <source>This message is damaged in the database; what could be read of it is shown.</source>
        <translation>这条消息在数据库中已损坏；显示的是可以读取的部分。</translation>
    </message>
    <message>
        <source>This message is on another branch. Wait until the answer has ended.</source>
        <translation>这条消息在另一个分支上。请等待回答结束。</translation>
    </message>
    <message>
        <source>This model belongs to kvdesk itself and stays.</source>
        <translation>这个模型属于 kvdesk 自身，会一直保留。</translation>
    </message>
    <message>
        <source>This model has a recurrent state, of which no prefix can be shared.</source>
        <translation>这个模型有循环状态，不能共享前缀。</translation>
    </message>
    <message>
        <source>This model has learned its positions, 0 to {last:,}, and the experiment needs {wanted:,}: choose smaller parameters where there are any.</source>
        <translation>这个模型学习了位置 0 到 {last:,}，而实验需要 {wanted:,}：请尽量选择更小的参数。</translation>
    </message>
    <message>
        <source>This model has no text tokenizer, so it cannot chat. Its cache can still be examined and audited.</source>
        <translation>这个模型没有文本分词器，因此不能对话。仍可以查看和核对它的缓存。</translation>
    </message>
    <message>
        <source>This model is open: open another one first.</source>
        <translation>这个模型正在使用：请先打开其他模型。</translation>
    </message>
    <message>
        <source>This model is recurrent: it keeps one state for each sequence, and no keys and values to measure.</source>
        <translation>这个模型是循环的：它为每个序列保留一个状态，没有可测量的 Key 和 Value。</translation>
    </message>
    <message>
        <source>This model keeps no attention cache: there are no cells.</source>
        <translation>这个模型没有注意力缓存：没有单元。</translation>
    </message>
    <message>
        <source>This model looks ahead: its batches cannot be larger than n_ubatch, {n_ubatch}.</source>
        <translation>这个模型会向前看：它的批次不能大于 n_ubatch（{n_ubatch}）。</translation>
    </message>
    <message>
        <source>This model takes no quantized K and V together.</source>
        <translation>这个模型不支持 K 和 V 同时量化。</translation>
    </message>
    <message>
        <source>This model&apos;s cache is not one of plain attention: its own windows already decide what it forgets.</source>
        <translation>这个模型的缓存不是普通的注意力缓存：它自己的窗口已经决定忘记什么。</translation>
    </message>
    <message>
        <source>This model&apos;s cache is not one of plain attention: parts of its sequences cannot be removed freely.</source>
        <translation>这个模型的缓存不是普通的注意力缓存：不能随意移除其序列的一部分。</translation>
    </message>
    <message>
        <source>This model&apos;s cache is not one of plain attention: the day cannot be moved cell by cell.</source>
        <translation>这个模型的缓存不是普通的注意力缓存：无法逐个单元移动这一天的内容。</translation>
    </message>
    <message>
        <source>This model&apos;s cache is not one of plain attention: what is moved of it depends on its windows.</source>
        <translation>这个模型的缓存不是普通的注意力缓存：移动多少取决于它的窗口。</translation>
    </message>
    <message>
        <source>This model&apos;s positions cannot be moved.</source>
        <translation>这个模型的位置不能移动。</translation>
    </message>
    <message>
        <source>This model&apos;s state cannot be cut, so it begins again: {counts}</source>
        <translation>这个模型的状态不能部分截断，因此从头开始：{counts}</translation>
    </message>
    <message>
        <source>This model&apos;s state comes back only whole, so it went back to a checkpoint: {counts}</source>
        <translation>这个模型的状态只能整体恢复，因此回到了一个检查点：{counts}</translation>
    </message>
    <message>
        <source>This preset was made by a newer version of kvdesk.</source>
        <translation>这个预设由更新版本的 kvdesk 创建。</translation>
    </message>
    <message>
        <source>This system has no keyring, so the key is kept in a file that only you can read: {file}.</source>
        <translation>这个系统没有密钥环，因此密钥保存在只有你能读取的文件中：{file}。</translation>
    </message>
    <message>
        <source>This template cannot be used; the one before stays in force.</source>
        <translation>无法使用这个模板；之前的模板继续有效。</translation>
    </message>
    <message>
        <source>Thought for {min} min {s} s</source>
        <translation>思考了 {min} 分 {s} 秒</translation>
    </message>
    <message>
        <source>Thought for {s} s</source>
        <translation>思考了 {s} 秒</translation>
    </message>
    <message>
        <source>Thought, {n} words</source>
        <translation>思考过程，{n} 个词</translation>
    </message>
    <message>
        <source>Threads</source>
        <translation>线程</translation>
    </message>
    <message>
        <source>Threads for prompts</source>
        <translation>提示词线程</translation>
    </message>
    <message>
        <source>Threads used to decode</source>
        <translation>解码使用的线程</translation>
    </message>
    <message>
        <source>Three more answers at once</source>
        <translation>一次再生成三个回答</translation>
    </message>
    <message>
        <source>Time</source>
        <translation>时间</translation>
    </message>
    <message>
        <source>Time of a token over f16</source>
        <translation>一个 token 的用时与 f16 之比</translation>
    </message>
    <message>
        <source>Time per token against n_kv</source>
        <translation>每个 token 的用时与 n_kv 的关系</translation>
    </message>
    <message>
        <source>Time since the first reading</source>
        <translation>距第一个读数的时间</translation>
    </message>
    <message>
        <source>Time since the first reading; pauses are folded at the dashed lines</source>
        <translation>距第一个读数的时间；停顿在虚线处折叠</translation>
    </message>
    <message>
        <source>Time to move a state</source>
        <translation>移动一个状态的用时</translation>
    </message>
    <message>
        <source>Time to the first token</source>
        <translation>首个 token 用时</translation>
    </message>
    <message>
        <source>Timed in each state and round</source>
        <translation>在每种状态、每一轮中计时</translation>
    </message>
    <message>
        <source>Timeline</source>
        <translation>时间线</translation>
    </message>
    <message>
        <source>To compute {n:,} tokens afresh, as many cells must be free.</source>
        <translation>重新计算 {n:,} 个 token，需要同样多的空闲单元。</translation>
    </message>
    <message>
        <source>To the first operation</source>
        <translation>跳到第一次操作</translation>
    </message>
    <message>
        <source>To the last operation</source>
        <translation>跳到最后一次操作</translation>
    </message>
    <message>
        <source>Token for the model hub</source>
        <translation>模型 hub 的 token</translation>
    </message>
    <message>
        <source>Token ids: {ids}</source>
        <translation>token id：{ids}</translation>
    </message>
    <message>
        <source>Token {i} of the batch belongs to no sequence.</source>
        <translation>批次的 token {i} 不属于任何序列。</translation>
    </message>
    <message>
        <source>Token {i} of the batch has position {pos}.</source>
        <translation>批次的 token {i} 的位置为 {pos}。</translation>
    </message>
    <message>
        <source>Token {i} of the batch is {token}, which the model does not know.</source>
        <translation>批次的 token {i} 为 {token}，模型不认识它。</translation>
    </message>
    <message>
        <source>Token {i} of the batch names sequence {s}; the context has sequences 0 to {n_seq_max}.</source>
        <translation>批次的 token {i} 指定了序列 {s}；上下文的序列为 0 到 {n_seq_max}。</translation>
    </message>
    <message>
        <source>Token {token} is not in the vocabulary of {n_vocab} tokens.</source>
        <translation>Token {token} 不在 {n_vocab} 个 token 的词表中。</translation>
    </message>
    <message>
        <source>Token, for models with terms</source>
        <translation>token，用于有条款的模型</translation>
    </message>
    <message>
        <source>Tokens</source>
        <translation>token 数</translation>
    </message>
    <message>
        <source>Tokens / time of llama_decode, over 0.25 s</source>
        <translation>token 数 / llama_decode 用时，以 0.25 秒为窗口</translation>
    </message>
    <message>
        <source>Tokens a second it writes: measured when it ran last, or expected (≈)</source>
        <translation>每秒写出的 token 数：上次运行时测得，或为预计值（≈）</translation>
    </message>
    <message>
        <source>Tokens a second of all chats</source>
        <translation>所有对话的每秒 token 数</translation>
    </message>
    <message>
        <source>Tokens a second that it should write, if a token reads the whole file</source>
        <translation>预计每秒写出的 token 数，假定每个 token 读取整个文件</translation>
    </message>
    <message>
        <source>Tokens are written fastest with {quiet} threads on a quiet machine, {loaded} beside a busy one.</source>
        <translation>空闲的电脑上 {quiet} 个线程生成最快，电脑繁忙时为 {loaded} 个。</translation>
    </message>
    <message>
        <source>Tokens at the beginning that stay when the oldest messages are removed</source>
        <translation>移除最早的消息时，开头保留的 token 数</translation>
    </message>
    <message>
        <source>Tokens before</source>
        <translation>之前的 token</translation>
    </message>
    <message>
        <source>Tokens before those that are timed</source>
        <translation>计时部分之前的 token</translation>
    </message>
    <message>
        <source>Tokens before those that are timed; also a quarter, a half</source>
        <translation>计时部分之前的 token；也测四分之一、一半</translation>
    </message>
    <message>
        <source>Tokens came every {p50:.3g} ms (median; P95 {p95:.3g}, P99 {p99:.3g}). A token moved {mb:,.0f} MB, at {share} of the speed of a plain copy on one thread.</source>
        <translation>每 {p50:.3g} 毫秒得到一个 token（中位数；P95 为 {p95:.3g}，P99 为 {p99:.3g}）。一个 token 移动 {mb:,.0f} MB，速度为单线程普通复制的 {share}。</translation>
    </message>
    <message>
        <source>Tokens have several positions each (M-RoPE): llama.cpp would abort.</source>
        <translation>每个 token 有多个位置（M-RoPE）：llama.cpp 会中止。</translation>
    </message>
    <message>
        <source>Tokens in a chunk</source>
        <translation>每个分块的 token</translation>
    </message>
    <message>
        <source>Tokens in each prompt</source>
        <translation>每个提示词的 token 数</translation>
    </message>
    <message>
        <source>Tokens in each prompt; 4 in the report of six requests that this is about</source>
        <translation>每个提示词的 token 数；在所讨论的六个请求的报告中为 4</translation>
    </message>
    <message>
        <source>Tokens in these blocks; the last, unfinished block of a prompt is not told</source>
        <translation>这些块中的 token；提示词最后未满的块不会通知</translation>
    </message>
    <message>
        <source>Tokens into which these prompts are cut</source>
        <translation>这些提示词被切成的 token</translation>
    </message>
    <message>
        <source>Tokens of a middle answer</source>
        <translation>中等长度回答的 token 数</translation>
    </message>
    <message>
        <source>Tokens of a middle question</source>
        <translation>中等长度问题的 token 数</translation>
    </message>
    <message>
        <source>Tokens of context it was trained for</source>
        <translation>训练时的上下文长度（token）</translation>
    </message>
    <message>
        <source>Tokens of each question, all different</source>
        <translation>每个问题的 token 数，各不相同</translation>
    </message>
    <message>
        <source>Tokens of the answer</source>
        <translation>回答的 token</translation>
    </message>
    <message>
        <source>Tokens of the context, {n} in all</source>
        <translation>上下文的 token，共 {n} 个</translation>
    </message>
    <message>
        <source>Tokens of the conversation</source>
        <translation>对话的 token 数</translation>
    </message>
    <message>
        <source>Tokens of the longest chat that goes on</source>
        <translation>持续进行的最长对话的 token</translation>
    </message>
    <message>
        <source>Tokens of the prompt that is read in each round</source>
        <translation>每一轮读取的提示词的 token 数</translation>
    </message>
    <message>
        <source>Tokens of the prompt that is read with each n_batch and n_ubatch</source>
        <translation>用每个 n_batch 和 n_ubatch 读取的提示词的 token 数</translation>
    </message>
    <message>
        <source>Tokens of the text in each message</source>
        <translation>每条消息中文本的 token 数</translation>
    </message>
    <message>
        <source>Tokens of this chat&apos;s last prompt that were in the cache already; the others had to be read</source>
        <translation>这个对话的上一个提示词中已在缓存中的 token；其余的需要读取</translation>
    </message>
    <message>
        <source>Tokens per second</source>
        <translation>每秒 token 数</translation>
    </message>
    <message>
        <source>Tokens read while four answers go on</source>
        <translation>四个回答进行时读取的 token</translation>
    </message>
    <message>
        <source>Tokens that all begin with</source>
        <translation>所有提示词共同开头的 token 数</translation>
    </message>
    <message>
        <source>Tokens that all chats begin with</source>
        <translation>所有对话共同开头的 token 数</translation>
    </message>
    <message>
        <source>Tokens that are in the cache before</source>
        <translation>之前已在缓存中的 token</translation>
    </message>
    <message>
        <source>Tokens that are put in and removed</source>
        <translation>放入并移除的 token</translation>
    </message>
    <message>
        <source>Tokens that are read at most</source>
        <translation>最多读取的 token 数</translation>
    </message>
    <message>
        <source>Tokens that are timed at each depth, with all types in turn</source>
        <translation>在每个深度计时的 token，所有类型依次进行</translation>
    </message>
    <message>
        <source>Tokens that are timed in each round</source>
        <translation>每一轮计时的 token</translation>
    </message>
    <message>
        <source>Tokens the KV cache has room for (cells), for all conversations together; 0 takes the length the model was trained for</source>
        <translation>KV 缓存可容纳的 token 数（单元数），所有对话合计；0 表示采用模型训练时的长度</translation>
    </message>
    <message>
        <source>Tokens to a page</source>
        <translation>每页的 token 数</translation>
    </message>
    <message>
        <source>Tokens to a page of the simulated allocator</source>
        <translation>模拟分配器每页的 token 数</translation>
    </message>
    <message>
        <source>Tokens to keep</source>
        <translation>保留的 token 数</translation>
    </message>
    <message>
        <source>Tokens to penalize</source>
        <translation>惩罚的 token 数</translation>
    </message>
    <message>
        <source>Tokens written</source>
        <translation>写出的 token</translation>
    </message>
    <message>
        <source>Tokens written for each request</source>
        <translation>每个请求写出的 token 数</translation>
    </message>
    <message>
        <source>Tokens written for each request; 15 in that report</source>
        <translation>每个请求写出的 token 数；该报告中为 15</translation>
    </message>
    <message>
        <source>Tokens written from one token on; also an eighth to a half</source>
        <translation>从一个 token 开始写出的 token 数；也测八分之一到一半</translation>
    </message>
    <message>
        <source>Tokens {first:,} to {last:,} of its prompts</source>
        <translation>其提示词的第 {first:,} 到 {last:,} 个 token</translation>
    </message>
    <message>
        <source>Tokens; the others are shorter</source>
        <translation>token 数；其他的更短</translation>
    </message>
    <message>
        <source>Told {n} times</source>
        <translation>通知了 {n} 次</translation>
    </message>
    <message>
        <source>Too little to be noticed: it saves {saved:.2f} of {now:.1f} ms a token.</source>
        <translation>小到察觉不到：每个 token 的 {now:.1f} 毫秒中节省 {saved:.2f} 毫秒。</translation>
    </message>
    <message>
        <source>Too long: the conversation alone takes {n} of {n_ctx} tokens</source>
        <translation>太长：仅对话本身就占 {n} / {n_ctx} 个 token</translation>
    </message>
    <message>
        <source>Too long: {n_characters:,} characters, far more than {n_ctx:,} tokens hold</source>
        <translation>太长：{n_characters:,} 个字符，远超过 {n_ctx:,} 个 token 能容纳的内容</translation>
    </message>
    <message>
        <source>Too long: {n} tokens, and {room} fit with an answer</source>
        <translation>太长：{n} 个 token，加上回答只能容纳 {room} 个</translation>
    </message>
    <message>
        <source>Too many threads</source>
        <translation>太多的线程</translation>
    </message>
    <message>
        <source>Top K</source>
        <translation>Top K</translation>
    </message>
    <message>
        <source>Top P</source>
        <translation>Top P</translation>
    </message>
    <message>
        <source>Top n-sigma</source>
        <translation>Top n-sigma</translation>
    </message>
    <message>
        <source>Tour</source>
        <translation>导览</translation>
    </message>
    <message>
        <source>Trained for</source>
        <translation>训练长度</translation>
    </message>
    <message>
        <source>Try at</source>
        <translation>尝试位置</translation>
    </message>
    <message>
        <source>Try it</source>
        <translation>试一试</translation>
    </message>
    <message>
        <source>Try the server again</source>
        <translation>再次尝试连接服务器</translation>
    </message>
    <message>
        <source>Turns</source>
        <translation>轮次</translation>
    </message>
    <message>
        <source>Turns before a chat is deleted</source>
        <translation>对话在删除之前的轮次</translation>
    </message>
    <message>
        <source>Two questions about one text: the second one finds it in the cache.</source>
        <translation>关于同一段文本的两个问题：第二个问题可在缓存中找到这段文本。</translation>
    </message>
    <message>
        <source>Type</source>
        <translation>类型</translation>
    </message>
    <message>
        <source>Type a message</source>
        <translation>输入消息</translation>
    </message>
    <message>
        <source>Types and layout of the cache</source>
        <translation>缓存的类型与布局</translation>
    </message>
    <message>
        <source>Types of K and V</source>
        <translation>K 和 V 的类型</translation>
    </message>
    <message>
        <source>Typical P</source>
        <translation>Typical P</translation>
    </message>
    <message>
        <source>U: non-empty cells (the engine&apos;s `used`)</source>
        <translation>U：非空单元（引擎的 `used`）</translation>
    </message>
    <message>
        <source>Ubatches the last batch was cut into</source>
        <translation>上一个批次被切成的 ubatch 数</translation>
    </message>
    <message>
        <source>Undo</source>
        <translation>撤销</translation>
    </message>
    <message>
        <source>Undo the deletion</source>
        <translation>撤销删除</translation>
    </message>
    <message>
        <source>Undo the last operation</source>
        <translation>撤销上一次操作</translation>
    </message>
    <message>
        <source>Unexplained: the story&apos;s log says that one token was decoded at each step. A program of that kind does not become slower here, so either the log told what was meant and not what was done, or the time went outside llama_decode.</source>
        <translation>未能解释：故事的日志说每一步解码一个 token。这样的程序在这里不会变慢，因此要么日志记录的是意图而不是实际行为，要么时间花在 llama_decode 之外。</translation>
    </message>
    <message>
        <source>Unified KV cache</source>
        <translation>统一的 KV 缓存</translation>
    </message>
    <message>
        <source>Unpin</source>
        <translation>取消固定</translation>
    </message>
    <message>
        <source>Unpin this message</source>
        <translation>取消固定这条消息</translation>
    </message>
    <message>
        <source>Unpin: {text}</source>
        <translation>取消固定：{text}</translation>
    </message>
    <message>
        <source>Use the embedded model</source>
        <translation>使用内置模型</translation>
    </message>
    <message>
        <source>Used cells move to the front, shared ones stay shared; {rounding}</source>
        <translation>已用单元移到前面，共享的单元仍然共享；{rounding}</translation>
    </message>
    <message>
        <source>Used cells x the row of one cell in all layers</source>
        <translation>已用单元 x 所有层中一个单元的行</translation>
    </message>
    <message>
        <source>Used where that memory is not enough</source>
        <translation>该内存不足时使用</translation>
    </message>
    <message>
        <source>Usual cause: the chat template, or the program, leaves out the reasoning of earlier answers.</source>
        <translation>常见原因：对话模板或程序省略了之前回答的思考过程。</translation>
    </message>
    <message>
        <source>Usual cause: the program gives the calls of an earlier answer other ids.</source>
        <translation>常见原因：程序给先前回答中的调用换了 id。</translation>
    </message>
    <message>
        <source>Usual cause: the program puts an identifier or a header into the prompt that changes.</source>
        <translation>常见原因：程序在提示词中放入了会变化的标识符或头部。</translation>
    </message>
    <message>
        <source>Usual cause: the program writes an earlier answer again, with other blanks or escapes.</source>
        <translation>常见原因：程序重新写出先前的回答，空白或转义不同。</translation>
    </message>
    <message>
        <source>Usual cause: the program writes the arguments of a call again, with their fields in another order.</source>
        <translation>常见原因：程序重新写出调用的参数，字段顺序不同。</translation>
    </message>
    <message>
        <source>Usual cause: the program writes the arguments of a call again, without the fields that are null.</source>
        <translation>常见原因：程序重新写出调用的参数，去掉了值为 null 的字段。</translation>
    </message>
    <message>
        <source>Usual cause: the system prompt contains the date or the time.</source>
        <translation>常见原因：系统提示词中包含日期或时间。</translation>
    </message>
    <message>
        <source>Usual cause: the tools come in another order, or others come.</source>
        <translation>常见原因：工具的顺序不同，或换成了其他工具。</translation>
    </message>
    <message>
        <source>V as {type_v} needs flash attention: llama.cpp refuses it without.</source>
        <translation>V 为 {type_v} 需要 flash attention：没有它 llama.cpp 会拒绝。</translation>
    </message>
    <message>
        <source>V cache type</source>
        <translation>V 缓存类型</translation>
    </message>
    <message>
        <source>V is {type_v}, and quantized V needs flash attention.</source>
        <translation>V 为 {type_v}，而量化 V 需要 flash attention。</translation>
    </message>
    <message>
        <source>V of type {type_v} needs flash attention.</source>
        <translation>V 的类型 {type_v} 需要 flash attention。</translation>
    </message>
    <message>
        <source>Values of all layers</source>
        <translation>所有层的 Value</translation>
    </message>
    <message>
        <source>Verify</source>
        <translation>验证</translation>
    </message>
    <message>
        <source>Verify its cells</source>
        <translation>验证其单元</translation>
    </message>
    <message>
        <source>Verifying: computing the conversation again</source>
        <translation>正在验证：重新计算对话</translation>
    </message>
    <message>
        <source>Version {i} of {n}</source>
        <translation>版本 {i} / {n}</translation>
    </message>
    <message>
        <source>Versions</source>
        <translation>版本</translation>
    </message>
    <message>
        <source>Versions and licences</source>
        <translation>版本与许可证</translation>
    </message>
    <message>
        <source>Very old machines; short answers in English</source>
        <translation>很旧的电脑；英文短回答</translation>
    </message>
    <message>
        <source>View</source>
        <translation>视图</translation>
    </message>
    <message>
        <source>Wait until all answers have ended</source>
        <translation>请等待所有回答结束</translation>
    </message>
    <message>
        <source>Wait until the work that is being shown has ended, or cancel it.</source>
        <translation>请等待正在显示的工作结束，或取消它。</translation>
    </message>
    <message>
        <source>Waiting for the engine…</source>
        <translation>正在等待引擎…</translation>
    </message>
    <message>
        <source>Waiting since kvdesk was closed</source>
        <translation>自 kvdesk 关闭以来一直等待</translation>
    </message>
    <message>
        <source>Waiting: the answer failed</source>
        <translation>等待中：回答失败</translation>
    </message>
    <message>
        <source>Waiting: the answer was interrupted</source>
        <translation>等待中：回答已中断</translation>
    </message>
    <message>
        <source>Waiting: the answer was stopped</source>
        <translation>等待中：回答已停止</translation>
    </message>
    <message>
        <source>Waiting: the engine has stopped</source>
        <translation>等待中：引擎已停止</translation>
    </message>
    <message>
        <source>Waiting: the model could not be opened</source>
        <translation>等待中：无法打开模型</translation>
    </message>
    <message>
        <source>Wall time of get and set</source>
        <translation>读取和写入的实际用时</translation>
    </message>
    <message>
        <source>Wall time of the llama_decode calls that rotated K, their tokens included</source>
        <translation>旋转了 K 的 llama_decode 调用的实际用时，包括其中的 token</translation>
    </message>
    <message>
        <source>Warnings</source>
        <translation>警告</translation>
    </message>
    <message>
        <source>Wasted attention span, in cells: n_kv - cells visible at the next position</source>
        <translation>浪费的注意力跨度（单元数）：n_kv - 下一个位置可见的单元数</translation>
    </message>
    <message>
        <source>Ways</source>
        <translation>方式</translation>
    </message>
    <message>
        <source>Ways of defragmenting, simulated (medians over the days)</source>
        <translation>各种碎片整理方式，模拟（各天的中位数）</translation>
    </message>
    <message>
        <source>What an answer cost</source>
        <translation>一个回答的代价</translation>
    </message>
    <message>
        <source>What can be done to the cache of a model with these settings, and why not.</source>
        <translation>在这些设置下可以对模型的缓存做什么，不能做的原因是什么。</translation>
    </message>
    <message>
        <source>What can be done with the chat</source>
        <translation>可以对这个对话做什么</translation>
    </message>
    <message>
        <source>What did that do?</source>
        <translation>产生了什么影响？</translation>
    </message>
    <message>
        <source>What differs between the runs</source>
        <translation>两次运行的不同之处</translation>
    </message>
    <message>
        <source>What do quantized K and V save, cost and lose?</source>
        <translation>量化 K 和 V 能节省什么、代价是什么、损失什么？</translation>
    </message>
    <message>
        <source>What do you want to ask?</source>
        <translation>想问些什么？</translation>
    </message>
    <message>
        <source>What does SGLang&apos;s tree of prefixes save with llama.cpp?</source>
        <translation>SGLang 的前缀树用在 llama.cpp 上能节省什么？</translation>
    </message>
    <message>
        <source>What does moving cells cost, what is the least it can cost, and how near does kvdesk come?</source>
        <translation>移动单元的代价是多少、最少可以是多少，kvdesk 与之相差多少？</translation>
    </message>
    <message>
        <source>What does this function do? Answer in two sentences.</source>
        <translation>这个函数是做什么的？请用两句话回答。</translation>
    </message>
    <message>
        <source>What happens then: the oldest messages can be removed from the context</source>
        <translation>届时如何处理：可以从上下文中移除最早的消息</translation>
    </message>
    <message>
        <source>What happens to the conversations in the cache</source>
        <translation>缓存中的对话如何处理</translation>
    </message>
    <message>
        <source>What has left the sliding window comes back only with a checkpoint of the whole state.</source>
        <translation>离开滑动窗口的内容只能通过整个状态的检查点恢复。</translation>
    </message>
    <message>
        <source>What has left the sliding window does not come back when the end is removed.</source>
        <translation>移除末尾时，已离开滑动窗口的内容不会恢复。</translation>
    </message>
    <message>
        <source>What is called its last request is that one.</source>
        <translation>这里所说的最后一个请求就是那一个。</translation>
    </message>
    <message>
        <source>What is this text about? Answer in one sentence.</source>
        <translation>这段文本讲的是什么？请用一句话回答。</translation>
    </message>
    <message>
        <source>What it is good for, and its licence</source>
        <translation>适合的用途及其许可证</translation>
    </message>
    <message>
        <source>What new chats do when their context is full</source>
        <translation>新对话在上下文已满时如何处理</translation>
    </message>
    <message>
        <source>What other applications downloaded, whether it fits, and how fast it should be</source>
        <translation>其他应用程序下载的模型，能否在这里运行，以及预计的速度</translation>
    </message>
    <message>
        <source>What other programs asked before leaves the cache for memory while another request runs, when the speed gained is worth it. Off: their cells stay while there is room</source>
        <translation>有请求运行时，若提速合算，其他程序先前的请求会移出缓存，存入内存。关闭后，只要有空间，其单元就留在缓存中</translation>
    </message>
    <message>
        <source>What stands before it is not known</source>
        <translation>不知道它前面是什么</translation>
    </message>
    <message>
        <source>What the operation did</source>
        <translation>操作的结果</translation>
    </message>
    <message>
        <source>What this costs in the cache</source>
        <translation>这对缓存的影响</translation>
    </message>
    <message>
        <source>What was done</source>
        <translation>所做的操作</translation>
    </message>
    <message>
        <source>What was sent before, while the box is empty</source>
        <translation>输入框为空时，调出之前发送的内容</translation>
    </message>
    <message>
        <source>What would vLLM&apos;s pages and SGLang&apos;s tree do with this very history?</source>
        <translation>vLLM 的分页和 SGLang 的前缀树会如何处理同一段历史？</translation>
    </message>
    <message>
        <source>When full</source>
        <translation>上下文已满时</translation>
    </message>
    <message>
        <source>When full…</source>
        <translation>已满时…</translation>
    </message>
    <message>
        <source>When it was first stored: old to new</source>
        <translation>首次存储的时间：从旧到新</translation>
    </message>
    <message>
        <source>When it was opened last</source>
        <translation>上次打开的时间</translation>
    </message>
    <message>
        <source>When should a fragmented cache be compacted, and how?</source>
        <translation>有碎片的缓存应在何时、如何整理？</translation>
    </message>
    <message>
        <source>When the context is full</source>
        <translation>上下文已满时</translation>
    </message>
    <message>
        <source>When the context is full: {policy}</source>
        <translation>上下文已满时：{policy}</translation>
    </message>
    <message>
        <source>When the context is full…</source>
        <translation>上下文已满时…</translation>
    </message>
    <message>
        <source>When the context of this conversation is full</source>
        <translation>当这个对话的上下文已满时</translation>
    </message>
    <message>
        <source>When to compact</source>
        <translation>何时整理</translation>
    </message>
    <message>
        <source>Where it lies: {tiers}</source>
        <translation>所在位置：{tiers}</translation>
    </message>
    <message>
        <source>Where one token is tried: only the position right after the sequence&apos;s last one is taken</source>
        <translation>尝试放入一个 token 的位置：只接受紧接在序列最后位置之后的位置</translation>
    </message>
    <message>
        <source>Where their states are kept, nothing is read again.</source>
        <translation>保留其状态的对话无需重新读取。</translation>
    </message>
    <message>
        <source>Whether it grows is not judged.</source>
        <translation>不判断它是否增长。</translation>
    </message>
    <message>
        <source>Whether the file and 0.5 GB for a context fit into the memory that is free now</source>
        <translation>文件加上用于上下文的 0.5 GB 是否放得进当前空闲的内存</translation>
    </message>
    <message>
        <source>Whether this installation is whole: a window, a plot, the store, the model, the cache.</source>
        <translation>检查安装是否完整：窗口、图表、存储、模型和缓存。</translation>
    </message>
    <message>
        <source>Which begin with the same system prompt</source>
        <translation>以同一系统提示词开头</translation>
    </message>
    <message>
        <source>Which leaves holes</source>
        <translation>删除后留下空洞</translation>
    </message>
    <message>
        <source>Whole blocks that the server&apos;s events told of and that are still there</source>
        <translation>服务器的事件通知过且仍然存在的完整块</translation>
    </message>
    <message>
        <source>Whole paths of files</source>
        <translation>文件的完整路径</translation>
    </message>
    <message>
        <source>Why is the sky blue?</source>
        <translation>天空为什么是蓝色的？</translation>
    </message>
    <message>
        <source>Why is the sky blue? Answer in two sentences.</source>
        <translation>天空为什么是蓝色的？请用两句话回答。</translation>
    </message>
    <message>
        <source>Why so much of the prompt was in the cache</source>
        <translation>为什么提示词有这么多在缓存中</translation>
    </message>
    <message>
        <source>Why the first token came when it did, and what was reused; Esc closes it</source>
        <translation>首个 token 为什么在这时出现，以及复用了什么；按 Esc 关闭</translation>
    </message>
    <message>
        <source>Why: {reason}.</source>
        <translation>原因：{reason}。</translation>
    </message>
    <message>
        <source>Why?</source>
        <translation>为什么？</translation>
    </message>
    <message>
        <source>Window</source>
        <translation>窗口</translation>
    </message>
    <message>
        <source>With K and V as q8_0, {smaller:,} cells fit.</source>
        <translation>K 和 V 用 q8_0 时可容纳 {smaller:,} 个单元。</translation>
    </message>
    <message>
        <source>With blocks of 16, vLLM&apos;s rule would compute {blocks} times the prompt tokens that were computed here, and SGLang&apos;s tree {tree} times. Of the slots in blocks {empty} would be empty if sequences stay (from {least:.3f} with blocks of {small} to {most:.3f} with {large}), where {holes} of the cells below llama.cpp&apos;s high-water mark were: those cost time, and can be used, where an empty slot of a block can be used by its sequence only.</source>
        <translation>块为 16 时，按 vLLM 的规则需要计算的提示词 token 是这里的 {blocks} 倍，SGLang 的前缀树为 {tree} 倍。如果序列保留，块中的槽位有 {empty} 为空（块为 {small} 时为 {least:.3f}，块为 {large} 时为 {most:.3f}），而 llama.cpp 高水位以下的单元有 {holes} 为空：后者耗费时间，但可以使用；块中的空槽位只能由其序列使用。</translation>
    </message>
    <message>
        <source>With flash attention masked cells are skipped, so there is little to gain.</source>
        <translation>使用 flash attention 时会跳过被屏蔽的单元，因此收益很小。</translation>
    </message>
    <message>
        <source>With this architecture llama.cpp writes beyond its memory where a token of a batch belongs to several sequences, and aborts.</source>
        <translation>在这种架构下，如果批次中的一个 token 属于多个序列，llama.cpp 会越界写内存并中止。</translation>
    </message>
    <message>
        <source>With this architecture llama.cpp writes the states of several sequences in one batch to wrong places, and aborts: each sequence needs a batch of its own.</source>
        <translation>在这种架构下，llama.cpp 会把一个批次中多个序列的状态写到错误的位置并中止：每个序列需要单独的批次。</translation>
    </message>
    <message>
        <source>With this model the codes tell nothing of what a window loses.</source>
        <translation>用这个模型时，代码不能说明窗口丢失了什么。</translation>
    </message>
    <message>
        <source>With this model the codes therefore tell nothing of what a window loses.</source>
        <translation>因此，用这个模型时，代码不能说明窗口丢失了什么。</translation>
    </message>
    <message>
        <source>With this template there is no prompt.</source>
        <translation>使用这个模板得不到提示词。</translation>
    </message>
    <message>
        <source>With {used:.0f} cells in use a token takes {over} times as long in a context of {most:,} cells as in one of {least:,}; the buffer of K and V grows from {least_mb:,.1f} to {most_mb:,.1f} MB. A prompt of {prompt:.0f} tokens takes {cut_over} times as long with n_ubatch {cut} as with {largest_cut}.</source>
        <translation>已用 {used:.0f} 个单元时，一个 token 在 {most:,} 个单元的上下文中的用时是在 {least:,} 个单元中的 {over} 倍；K 和 V 的缓冲区从 {least_mb:,.1f} MB 增加到 {most_mb:,.1f} MB。{prompt:.0f} 个 token 的提示词，n_ubatch 为 {cut} 时的用时是 {largest_cut} 时的 {cut_over} 倍。</translation>
    </message>
    <message>
        <source>Without a cache</source>
        <translation>不用缓存</translation>
    </message>
    <message>
        <source>Without a cache each step computes the whole text again: N² against N, but steady.</source>
        <translation>不用缓存时每一步都重新计算全文：N² 对 N，但速度稳定。</translation>
    </message>
    <message>
        <source>Without compaction the day&apos;s tokens and first tokens take {never:.3g} s; over a threshold {threshold}, by the cost model before a question {cost}, in pauses {idle} of it (a middle token {middle}). Compactions moved {moved_threshold}, {moved_cost} and {moved_idle}; somebody waited {noticed_threshold}, {noticed_cost} and {noticed_idle} for them. Simulated over the threshold, filling holes moves {filled:,.0f} cells, the whole state {whole:,.0f}, and grouping by sequence {grouped:,.0f}.</source>
        <translation>不整理时，一天的 token 和首个 token 用时 {never:.3g} 秒；超过阈值时整理为其 {threshold}，问题之前按代价模型整理为 {cost}，停顿时整理为 {idle}（中间的 token 为 {middle}）。整理分别移动了 {moved_threshold}、{moved_cost} 和 {moved_idle}；用户为此等待了 {noticed_threshold}、{noticed_cost} 和 {noticed_idle}。超过阈值时的模拟：填补空洞移动 {filled:,.0f} 个单元，整个状态移动 {whole:,.0f} 个，按序列分组移动 {grouped:,.0f} 个。</translation>
    </message>
    <message>
        <source>Without decodes</source>
        <translation>不含 decode</translation>
    </message>
    <message>
        <source>Without flash attention V is stored transposed: it must be computed again.</source>
        <translation>没有 flash attention 时 V 以转置方式存储：必须重新计算。</translation>
    </message>
    <message>
        <source>Without what stands in quotation marks, and without what errors say: it could be from a chat.</source>
        <translation>不含引号中的内容和错误的具体说明：它们可能来自对话。</translation>
    </message>
    <message>
        <source>Work under way</source>
        <translation>正在进行的工作</translation>
    </message>
    <message>
        <source>Write a message</source>
        <translation>输入消息</translation>
    </message>
    <message>
        <source>Write the graphs as a picture, or every series as a table</source>
        <translation>将图表写为图片，或将所有曲线写为表格</translation>
    </message>
    <message>
        <source>Write the key into the field for it, not into the address.</source>
        <translation>请将密钥填入它的输入栏，而不是写在地址中。</translation>
    </message>
    <message>
        <source>Writes these chats as Markdown, on another disk</source>
        <translation>将这些对话以 Markdown 写入其他磁盘</translation>
    </message>
    <message>
        <source>Writing and summaries</source>
        <translation>写作与摘要</translation>
    </message>
    <message>
        <source>Written for each chat in each round</source>
        <translation>每一轮为每个对话写出的</translation>
    </message>
    <message>
        <source>Written in each round in each context</source>
        <translation>每一轮在每个上下文中写出</translation>
    </message>
    <message>
        <source>Written in each round with each number of threads</source>
        <translation>每一轮用每个线程数写出</translation>
    </message>
    <message>
        <source>Written: {file}</source>
        <translation>已写入：{file}</translation>
    </message>
    <message>
        <source>X {x}, next valid position {next}, Y {y}</source>
        <translation>X {x}，下一个有效位置 {next}，Y {y}</translation>
    </message>
    <message>
        <source>XTC</source>
        <translation>XTC</translation>
    </message>
    <message>
        <source>XTC probability</source>
        <translation>XTC 概率</translation>
    </message>
    <message>
        <source>XTC threshold</source>
        <translation>XTC 阈值</translation>
    </message>
    <message>
        <source>XTC, typical P, top n-sigma, dynamic temperature</source>
        <translation>XTC、typical P、top n-sigma、动态温度</translation>
    </message>
    <message>
        <source>Yes: a scattered cache is up to {ratio:.2g} times slower ({kinds}).</source>
        <translation>是：分散的缓存最多慢到 {ratio:.2g} 倍（{kinds}）。</translation>
    </message>
    <message>
        <source>Yes: in {minutes:.2g} minutes it becomes {words}.</source>
        <translation>是：{minutes:.2g} 分钟内会{words}。</translation>
    </message>
    <message>
        <source>Yes: in {most:,} cells a token takes {over:.2g} times as long as in {least:,}.</source>
        <translation>是：{most:,} 个单元时，一个 token 的用时是 {least:,} 个单元时的 {over:.2g} 倍。</translation>
    </message>
    <message>
        <source>Yes: it frees {freed:.2g} of {held:.2g} MB.</source>
        <translation>是：{held:.2g} MB 中释放了 {freed:.2g} MB。</translation>
    </message>
    <message>
        <source>Yes: the formula gives what is allocated.</source>
        <translation>是：公式算出的就是实际分配的大小。</translation>
    </message>
    <message>
        <source>Yes: with recycled ids a request takes {ratio:.2g} times as long.</source>
        <translation>是：使用回收的 id 时，请求的用时为 {ratio:.2g} 倍。</translation>
    </message>
    <message>
        <source>Yes: without sharing, a chat&apos;s first token takes {ratio:.2g} times as long.</source>
        <translation>是：不共享时，对话的首个 token 用时为共享时的 {ratio:.2g} 倍。</translation>
    </message>
    <message>
        <source>Yes: without the cache {most} tokens take {ratio:.2g} of the time.</source>
        <translation>是：不用缓存时，{most} 个 token 的用时为使用缓存时的 {ratio:.2g} 倍。</translation>
    </message>
    <message>
        <source>You</source>
        <translation>你</translation>
    </message>
    <message>
        <source>You have no permission to read {path}.</source>
        <translation>你没有读取 {path} 的权限。</translation>
    </message>
    <message>
        <source>Your chats are listed here. Send a message to start one.</source>
        <translation>这里列出你的对话。发送一条消息即可开始。</translation>
    </message>
    <message>
        <source>Your chats too, to programs with the key: another kvdesk can then show this cache</source>
        <translation>包括你的对话，向持有密钥的程序显示：另一个 kvdesk 因此可以显示这个缓存</translation>
    </message>
    <message>
        <source>Your text becomes a version beside this one; the model can continue it</source>
        <translation>你的文本会成为这个回答旁边的一个版本；模型可以接着写</translation>
    </message>
    <message>
        <source>Zip files (*.zip)</source>
        <translation>Zip 文件 (*.zip)</translation>
    </message>
    <message>
        <source>Zoom</source>
        <translation>缩放</translation>
    </message>
    <message>
        <source>Zoom in</source>
        <translation>放大</translation>
    </message>
    <message>
        <source>Zoom out</source>
        <translation>缩小</translation>
    </message>
    <message>
        <source>`kvdesk --help` lists the commands.</source>
        <translation>`kvdesk --help` 列出所有命令。</translation>
    </message>
    <message>
        <source>`kvdesk chat` and `kvdesk serve` work without one.</source>
        <translation>`kvdesk chat` 和 `kvdesk serve` 无需显示器即可使用。</translation>
    </message>
    <message>
        <source>a .json, .jsonl or .zip file</source>
        <translation>.json、.jsonl 或 .zip 文件</translation>
    </message>
    <message>
        <source>a cache shared with another context</source>
        <translation>与另一个上下文共享的缓存</translation>
    </message>
    <message>
        <source>a context is made, filled, emptied, filled again and closed</source>
        <translation>创建、填充、清空、再次填充并关闭一个上下文</translation>
    </message>
    <message>
        <source>a far position behind the last</source>
        <translation>最后位置之后很远的位置</translation>
    </message>
    <message>
        <source>a fresh id for each request, nothing removed</source>
        <translation>每个请求用新 id，不移除</translation>
    </message>
    <message>
        <source>a gap is taken</source>
        <translation>可以有空缺</translation>
    </message>
    <message>
        <source>a guided tour of the window with the real model</source>
        <translation>用真实的模型进行窗口导览</translation>
    </message>
    <message>
        <source>a journal of a cache, operation by operation, without a model</source>
        <translation>逐个操作回放缓存的操作记录，不需要模型</translation>
    </message>
    <message>
        <source>a journal, exported from the Timeline</source>
        <translation>从时间线导出的操作记录</translation>
    </message>
    <message>
        <source>a longer beginning is in another sequence</source>
        <translation>更长的开头在另一个序列中</translation>
    </message>
    <message>
        <source>a message was deleted</source>
        <translation>删除了一条消息</translation>
    </message>
    <message>
        <source>a metadata entry has no name, or an endless one</source>
        <translation>有一项元数据没有名称，或名称没有结尾</translation>
    </message>
    <message>
        <source>a number</source>
        <translation>一个数字</translation>
    </message>
    <message>
        <source>a number is missing, or too large</source>
        <translation>缺少数字，或数字太大</translation>
    </message>
    <message>
        <source>a parameter; may be repeated</source>
        <translation>一个参数；可以重复</translation>
    </message>
    <message>
        <source>a part of it</source>
        <translation>它的一部分</translation>
    </message>
    <message>
        <source>a piece of each</source>
        <translation>每段各一块</translation>
    </message>
    <message>
        <source>a position left out inside a batch</source>
        <translation>批次内漏掉一个位置</translation>
    </message>
    <message>
        <source>a position twice inside a batch</source>
        <translation>批次内一个位置出现两次</translation>
    </message>
    <message>
        <source>a prefill takes {prefill_ms:,.0f} ms, a restore {restore_ms:,.0f} ms: not worth saving</source>
        <translation>预填充需 {prefill_ms:,.0f} 毫秒，恢复需 {restore_ms:,.0f} 毫秒：不值得保存</translation>
    </message>
    <message>
        <source>a prompt</source>
        <translation>一段提示词</translation>
    </message>
    <message>
        <source>a prompt among answers, round {n}</source>
        <translation>回答之间的一段提示词，第 {n} 轮</translation>
    </message>
    <message>
        <source>a prompt in calls</source>
        <translation>分多次调用的一段提示词</translation>
    </message>
    <message>
        <source>a prompt must have some text</source>
        <translation>提示词不能为空</translation>
    </message>
    <message>
        <source>a prompt, n_batch {size} over {whole}</source>
        <translation>一段提示词，n_batch {size} 与 {whole} 之比</translation>
    </message>
    <message>
        <source>a prompt, n_ubatch {cut} over {most}</source>
        <translation>一段提示词，n_ubatch {cut} 与 {most} 之比</translation>
    </message>
    <message>
        <source>a prompt, round {n}</source>
        <translation>一段提示词，第 {n} 轮</translation>
    </message>
    <message>
        <source>a range ends before it begins</source>
        <translation>范围的终点在起点之前</translation>
    </message>
    <message>
        <source>a saved journal, for experiments on a history</source>
        <translation>保存的操作记录，用于基于历史的实验</translation>
    </message>
    <message>
        <source>a saved state</source>
        <translation>保存的状态</translation>
    </message>
    <message>
        <source>a schema is an object, true or false</source>
        <translation>schema 应为对象、true 或 false</translation>
    </message>
    <message>
        <source>a simulation: the pages that a paged allocator would hold for the same content</source>
        <translation>模拟：分页分配器存储相同内容会占用的页</translation>
    </message>
    <message>
        <source>a small cache for sliding-window layers (swa_full off)</source>
        <translation>滑动窗口层使用小缓存（关闭 swa_full）</translation>
    </message>
    <message>
        <source>a tensor has an endless name</source>
        <translation>有一个张量的名称没有结尾</translation>
    </message>
    <message>
        <source>a token in the ring, before over after a compaction</source>
        <translation>环中的一个 token，整理之前与之后之比</translation>
    </message>
    <message>
        <source>a token is written &lt;[id]&gt; or &lt;text&gt;</source>
        <translation>token 写作 &lt;[id]&gt; 或 &lt;text&gt;</translation>
    </message>
    <message>
        <source>a token of a new chat over a bare context</source>
        <translation>新对话的一个 token 与空上下文之比</translation>
    </message>
    <message>
        <source>a token over before</source>
        <translation>token 用时与之前之比</translation>
    </message>
    <message>
        <source>a token, {way} over before</source>
        <translation>一个 token，{way}与之前之比</translation>
    </message>
    <message>
        <source>a turn; may be repeated</source>
        <translation>一轮；可以重复</translation>
    </message>
    <message>
        <source>a type is one of {types}</source>
        <translation>类型应为以下之一：{types}</translation>
    </message>
    <message>
        <source>a whole number</source>
        <translation>一个整数</translation>
    </message>
    <message>
        <source>about 0.1 s</source>
        <translation>约 0.1 秒</translation>
    </message>
    <message>
        <source>about {duration} at the speed measured just now</source>
        <translation>按刚才测得的速度约 {duration}</translation>
    </message>
    <message>
        <source>about {duration} at the speed of the last run on this model</source>
        <translation>按上次在这个模型上运行的速度约 {duration}</translation>
    </message>
    <message>
        <source>about {n} tok/s</source>
        <translation>约 {n} tok/s</translation>
    </message>
    <message>
        <source>about {seconds} s</source>
        <translation>约 {seconds} 秒</translation>
    </message>
    <message>
        <source>address (default {default})</source>
        <translation>地址（默认 {default}）</translation>
    </message>
    <message>
        <source>after</source>
        <translation>之后</translation>
    </message>
    <message>
        <source>after {first}…{end}-1 </source>
        <translation>在 {first}…{end}-1 之后 </translation>
    </message>
    <message>
        <source>age</source>
        <translation>新旧</translation>
    </message>
    <message>
        <source>all read ms</source>
        <translation>全部读完（毫秒）</translation>
    </message>
    <message>
        <source>all together</source>
        <translation>全部合在一起</translation>
    </message>
    <message>
        <source>all {n_used:,} used cells agree with llama.cpp&apos;s own state in position and sequences</source>
        <translation>全部 {n_used:,} 个已用单元的位置和序列都与 llama.cpp 自身的状态一致</translation>
    </message>
    <message>
        <source>allocated</source>
        <translation>已分配</translation>
    </message>
    <message>
        <source>alternating pages</source>
        <translation>交替的页</translation>
    </message>
    <message>
        <source>an edit or another answer can go back to these {n:,} tokens: {reason}</source>
        <translation>编辑或重新回答时可以回到这 {n:,} 个 token：{reason}</translation>
    </message>
    <message>
        <source>an empty sequence from -1 on</source>
        <translation>空序列从 -1 开始</translation>
    </message>
    <message>
        <source>an empty sequence from 0 on</source>
        <translation>空序列从 0 开始</translation>
    </message>
    <message>
        <source>an empty sequence from a far position on</source>
        <translation>空序列从远处的位置开始</translation>
    </message>
    <message>
        <source>an empty sequence from behind n_ctx on</source>
        <translation>空序列从 n_ctx 之后开始</translation>
    </message>
    <message>
        <source>an experiment, or two result.json files</source>
        <translation>一个实验，或两个 result.json 文件</translation>
    </message>
    <message>
        <source>an exported preset; the options below change it</source>
        <translation>导出的预设；后面的选项会更改它</translation>
    </message>
    <message>
        <source>and {n} more</source>
        <translation>以及另外 {n} 个</translation>
    </message>
    <message>
        <source>another branch of this conversation</source>
        <translation>这个对话的另一个分支</translation>
    </message>
    <message>
        <source>another conversation</source>
        <translation>另一个对话</translation>
    </message>
    <message>
        <source>another sequence from 0 on</source>
        <translation>另一个序列从 0 开始</translation>
    </message>
    <message>
        <source>another sequence removed, from 0</source>
        <translation>移除了另一个序列，从 0 开始</translation>
    </message>
    <message>
        <source>another sequence removed, positions go on</source>
        <translation>移除了另一个序列，位置继续</translation>
    </message>
    <message>
        <source>answer</source>
        <translation>回答</translation>
    </message>
    <message>
        <source>answered</source>
        <translation>已回答</translation>
    </message>
    <message>
        <source>answers at once, round {n}</source>
        <translation>同时进行的回答，第 {n} 轮</translation>
    </message>
    <message>
        <source>answers bit for bit as without a cache, slower</source>
        <translation>回答与不用缓存时逐位相同，较慢</translation>
    </message>
    <message>
        <source>arguments</source>
        <translation>参数</translation>
    </message>
    <message>
        <source>as long as the context</source>
        <translation>与上下文一样长</translation>
    </message>
    <message>
        <source>as they came</source>
        <translation>按到来顺序</translation>
    </message>
    <message>
        <source>at</source>
        <translation>时间</translation>
    </message>
    <message>
        <source>at least {limit}</source>
        <translation>至少 {limit}</translation>
    </message>
    <message>
        <source>at least {lost:,} of its rows</source>
        <translation>其中至少 {lost:,} 行</translation>
    </message>
    <message>
        <source>at most {limit}</source>
        <translation>至多 {limit}</translation>
    </message>
    <message>
        <source>at {time}</source>
        <translation>于 {time}</translation>
    </message>
    <message>
        <source>attached files</source>
        <translation>附加的文件</translation>
    </message>
    <message>
        <source>attention</source>
        <translation>注意力</translation>
    </message>
    <message>
        <source>attention sinks</source>
        <translation>attention sinks</translation>
    </message>
    <message>
        <source>back in about {return_ms:,.0f} ms</source>
        <translation>约 {return_ms:,.0f} 毫秒可恢复</translation>
    </message>
    <message>
        <source>back to a checkpoint of {n:,} tokens</source>
        <translation>回到 {n:,} 个 token 的检查点</translation>
    </message>
    <message>
        <source>batch splits, last batch</source>
        <translation>批次切分，上一个批次</translation>
    </message>
    <message>
        <source>batches</source>
        <translation>批次</translation>
    </message>
    <message>
        <source>batches that were split</source>
        <translation>被切分的批次</translation>
    </message>
    <message>
        <source>before</source>
        <translation>之前</translation>
    </message>
    <message>
        <source>before the context</source>
        <translation>创建上下文之前</translation>
    </message>
    <message>
        <source>behind holes</source>
        <translation>在空洞之后</translation>
    </message>
    <message>
        <source>behind the last when all was removed</source>
        <translation>全部移除后，最后位置之后</translation>
    </message>
    <message>
        <source>being answered</source>
        <translation>正在回答</translation>
    </message>
    <message>
        <source>being written to disk</source>
        <translation>正在写入磁盘</translation>
    </message>
    <message>
        <source>beside one busy process</source>
        <translation>旁边有一个繁忙的进程</translation>
    </message>
    <message>
        <source>between tokens P50</source>
        <translation>token 间隔 P50</translation>
    </message>
    <message>
        <source>block</source>
        <translation>块</translation>
    </message>
    <message>
        <source>blocks, requests: vLLM v1 (simulated)</source>
        <translation>块，请求：vLLM v1（模拟）</translation>
    </message>
    <message>
        <source>blocks, sequences that stay, copy on write (simulated)</source>
        <translation>块，保留的序列，写时复制（模拟）</translation>
    </message>
    <message>
        <source>branch</source>
        <translation>分支</translation>
    </message>
    <message>
        <source>branches of a chat</source>
        <translation>一个对话的分支</translation>
    </message>
    <message>
        <source>by hand</source>
        <translation>手动</translation>
    </message>
    <message>
        <source>by the cost model, before a question is read</source>
        <translation>按代价模型，在读取问题之前</translation>
    </message>
    <message>
        <source>by the cost model, in pauses (kvdesk)</source>
        <translation>按代价模型，在停顿时（kvdesk）</translation>
    </message>
    <message>
        <source>by the last operation</source>
        <translation>由上一次操作</translation>
    </message>
    <message>
        <source>bytes</source>
        <translation>字节</translation>
    </message>
    <message>
        <source>bytes a copy moves</source>
        <translation>复制移动的字节</translation>
    </message>
    <message>
        <source>bytes in a cell (over f16)</source>
        <translation>每个单元的字节（与 f16 之比）</translation>
    </message>
    <message>
        <source>bytes moved</source>
        <translation>移动的字节</translation>
    </message>
    <message>
        <source>bytes moved a second</source>
        <translation>每秒移动的字节</translation>
    </message>
    <message>
        <source>cache</source>
        <translation>缓存</translation>
    </message>
    <message>
        <source>call</source>
        <translation>调用</translation>
    </message>
    <message>
        <source>calls of tools</source>
        <translation>工具调用</translation>
    </message>
    <message>
        <source>calls taken</source>
        <translation>被接受的调用</translation>
    </message>
    <message>
        <source>capacity</source>
        <translation>容量</translation>
    </message>
    <message>
        <source>cell {cell}</source>
        <translation>单元 {cell}</translation>
    </message>
    <message>
        <source>cells</source>
        <translation>单元</translation>
    </message>
    <message>
        <source>cells after removal</source>
        <translation>移除后的单元</translation>
    </message>
    <message>
        <source>cells at the end</source>
        <translation>结束时的单元</translation>
    </message>
    <message>
        <source>cells in use</source>
        <translation>已用单元</translation>
    </message>
    <message>
        <source>cells moved</source>
        <translation>移动的单元</translation>
    </message>
    <message>
        <source>cells of the KV cache (default 4096)</source>
        <translation>KV 缓存的单元数（默认 4096）</translation>
    </message>
    <message>
        <source>cells of the text</source>
        <translation>文本的单元</translation>
    </message>
    <message>
        <source>cells that attention reads (n_kv)</source>
        <translation>注意力读取的单元 (n_kv)</translation>
    </message>
    <message>
        <source>cells that it shared are moved</source>
        <translation>它共享的单元被移动</translation>
    </message>
    <message>
        <source>cells used</source>
        <translation>已用单元</translation>
    </message>
    <message>
        <source>cells walked over</source>
        <translation>遍历的单元</translation>
    </message>
    <message>
        <source>cells when filled</source>
        <translation>填充后的单元</translation>
    </message>
    <message>
        <source>cells when removed</source>
        <translation>移除后的单元</translation>
    </message>
    <message>
        <source>changed</source>
        <translation>已变化</translation>
    </message>
    <message>
        <source>changed strongly</source>
        <translation>变化很大</translation>
    </message>
    <message>
        <source>changes</source>
        <translation>有变化</translation>
    </message>
    <message>
        <source>changes at most twice as much as by rounding alone</source>
        <translation>的变化最多为仅由舍入引起的两倍</translation>
    </message>
    <message>
        <source>changes strongly</source>
        <translation>变化很大</translation>
    </message>
    <message>
        <source>charts</source>
        <translation>图表</translation>
    </message>
    <message>
        <source>chat</source>
        <translation>对话</translation>
    </message>
    <message>
        <source>chats</source>
        <translation>对话</translation>
    </message>
    <message>
        <source>chats at once</source>
        <translation>同时进行的对话</translation>
    </message>
    <message>
        <source>chats from a file of kvdesk, ChatGPT, Open WebUI, LM Studio, Jan or llama.cpp</source>
        <translation>从 kvdesk、ChatGPT、Open WebUI、LM Studio、Jan 或 llama.cpp 的文件导入对话</translation>
    </message>
    <message>
        <source>chats to a file: JSON with everything, Markdown or HTML</source>
        <translation>将对话导出到文件：包含全部内容的 JSON、Markdown 或 HTML</translation>
    </message>
    <message>
        <source>chosen</source>
        <translation>已选择</translation>
    </message>
    <message>
        <source>cleared</source>
        <translation>已清空</translation>
    </message>
    <message>
        <source>closed</source>
        <translation>已关闭</translation>
    </message>
    <message>
        <source>code</source>
        <translation>代码</translation>
    </message>
    <message>
        <source>code {rc}: {why}</source>
        <translation>代码 {rc}：{why}</translation>
    </message>
    <message>
        <source>codes known</source>
        <translation>知道的代码</translation>
    </message>
    <message>
        <source>collapsed</source>
        <translation>已折叠</translation>
    </message>
    <message>
        <source>comes with kvdesk</source>
        <translation>kvdesk 自带</translation>
    </message>
    <message>
        <source>commands (each has --help):</source>
        <translation>命令（各有 --help）：</translation>
    </message>
    <message>
        <source>comments</source>
        <translation>批注</translation>
    </message>
    <message>
        <source>common prefix shared</source>
        <translation>共享相同前缀</translation>
    </message>
    <message>
        <source>compacted</source>
        <translation>已整理</translation>
    </message>
    <message>
        <source>compacting (ms)</source>
        <translation>整理（毫秒）</translation>
    </message>
    <message>
        <source>compaction, order kept</source>
        <translation>整理，保持顺序</translation>
    </message>
    <message>
        <source>compaction, the short conversation first</source>
        <translation>整理，短的对话在前</translation>
    </message>
    <message>
        <source>compactions</source>
        <translation>整理次数</translation>
    </message>
    <message>
        <source>compute</source>
        <translation>计算</translation>
    </message>
    <message>
        <source>compute buffers</source>
        <translation>计算缓冲区</translation>
    </message>
    <message>
        <source>computed</source>
        <translation>计算的</translation>
    </message>
    <message>
        <source>context</source>
        <translation>上下文</translation>
    </message>
    <message>
        <source>copied</source>
        <translation>复制的</translation>
    </message>
    <message>
        <source>copy GB/s</source>
        <translation>复制 GB/s</translation>
    </message>
    <message>
        <source>cores</source>
        <translation>核心</translation>
    </message>
    <message>
        <source>cores used</source>
        <translation>使用的核心</translation>
    </message>
    <message>
        <source>cost</source>
        <translation>代价</translation>
    </message>
    <message>
        <source>cost, {way}</source>
        <translation>代价，{way}</translation>
    </message>
    <message>
        <source>counted rounds (default 7, of ui at least; cache 3)</source>
        <translation>计入结果的轮数（默认 7，ui 至少 7；cache 为 3）</translation>
    </message>
    <message>
        <source>cumulative</source>
        <translation>累计</translation>
    </message>
    <message>
        <source>damaged chats</source>
        <translation>损坏的对话</translation>
    </message>
    <message>
        <source>data type of K (default f16)</source>
        <translation>K 的数据类型（默认 f16）</translation>
    </message>
    <message>
        <source>data type of V (default f16)</source>
        <translation>V 的数据类型（默认 f16）</translation>
    </message>
    <message>
        <source>day {day}, turn {turn}</source>
        <translation>第 {day} 天，第 {turn} 轮</translation>
    </message>
    <message>
        <source>decode</source>
        <translation>解码</translation>
    </message>
    <message>
        <source>decode, last request</source>
        <translation>解码，上一个请求</translation>
    </message>
    <message>
        <source>decode, now</source>
        <translation>解码，现在</translation>
    </message>
    <message>
        <source>deleted text</source>
        <translation>已删除的文本</translation>
    </message>
    <message>
        <source>depth (tokens)</source>
        <translation>深度（token）</translation>
    </message>
    <message>
        <source>did not load within {limit_s:.0f} s in a trial</source>
        <translation>在试运行中没有在 {limit_s:.0f} 秒内加载完</translation>
    </message>
    <message>
        <source>difference of logits after removal</source>
        <translation>移除后 logits 的差异</translation>
    </message>
    <message>
        <source>does not grow</source>
        <translation>不增长</translation>
    </message>
    <message>
        <source>done</source>
        <translation>完成</translation>
    </message>
    <message>
        <source>downloaded · {total}</source>
        <translation>已下载 · {total}</translation>
    </message>
    <message>
        <source>duration</source>
        <translation>用时</translation>
    </message>
    <message>
        <source>each conversation&apos;s cells side by side</source>
        <translation>每个对话的单元彼此相邻</translation>
    </message>
    <message>
        <source>each prompt read whole</source>
        <translation>每段提示词整段读取</translation>
    </message>
    <message>
        <source>embedded objects</source>
        <translation>嵌入的对象</translation>
    </message>
    <message>
        <source>empty</source>
        <translation>空</translation>
    </message>
    <message>
        <source>empty chats</source>
        <translation>空对话</translation>
    </message>
    <message>
        <source>empty slots, blocks of 16</source>
        <translation>空槽位，块为 16</translation>
    </message>
    <message>
        <source>empty: {cache}</source>
        <translation>空：{cache}</translation>
    </message>
    <message>
        <source>end</source>
        <translation>终点</translation>
    </message>
    <message>
        <source>ends in .json, .md or .html</source>
        <translation>以 .json、.md 或 .html 结尾</translation>
    </message>
    <message>
        <source>engine: prefill and decode speed, equal requests, reuse, memory; cache: equal requests, sharing, swapping, batching, load, compaction, exactness; ui: drawing, stalls, and what the inspector takes (the real window, on whatever display there is); serve: what HTTP costs, and several clients at once; peers: beside other programs (`kvdesk bench peers --help`); ui and peers need a checkout of the source</source>
        <translation>engine：预填充和解码速度、相同的请求、复用、内存；cache：相同的请求、共享、换出换入、批处理、负载、整理、精确性；ui：绘制、卡顿和检查器的开销（真实的窗口，使用现有的显示器）；serve：HTTP 的开销和多个客户端同时请求；peers：与其他程序相比（`kvdesk bench peers --help`）；ui 和 peers 需要源代码的检出目录</translation>
    </message>
    <message>
        <source>equations</source>
        <translation>公式</translation>
    </message>
    <message>
        <source>estimated</source>
        <translation>估计值</translation>
    </message>
    <message>
        <source>every head has keys and values of its own</source>
        <translation>每个 head 都有自己的 Key 和 Value</translation>
    </message>
    <message>
        <source>everything kept</source>
        <translation>全部保留</translation>
    </message>
    <message>
        <source>exact</source>
        <translation>精确</translation>
    </message>
    <message>
        <source>exact answers: new tokens must not come before older ones</source>
        <translation>精确回答：新的 token 不能位于较早的 token 之前</translation>
    </message>
    <message>
        <source>exact: every logit is the same</source>
        <translation>精确：每个 logit 都相同</translation>
    </message>
    <message>
        <source>expanded</source>
        <translation>已展开</translation>
    </message>
    <message>
        <source>experiment</source>
        <translation>实验</translation>
    </message>
    <message>
        <source>experiments that answer questions about the KV cache, with a report</source>
        <translation>回答关于 KV 缓存的问题的实验，并给出报告</translation>
    </message>
    <message>
        <source>exponent</source>
        <translation>指数</translation>
    </message>
    <message>
        <source>exponent {name}</source>
        <translation>指数，{name}</translation>
    </message>
    <message>
        <source>external fragmentation</source>
        <translation>外部碎片</translation>
    </message>
    <message>
        <source>f16 in other batches, which is rounding alone, gives {kl}</source>
        <translation>改变批次的 f16（只有舍入）为 {kl}</translation>
    </message>
    <message>
        <source>failed</source>
        <translation>失败</translation>
    </message>
    <message>
        <source>false allows no value</source>
        <translation>false 不允许任何值</translation>
    </message>
    <message>
        <source>figure</source>
        <translation>数值</translation>
    </message>
    <message>
        <source>filled</source>
        <translation>已填充</translation>
    </message>
    <message>
        <source>filled again</source>
        <translation>再次填充</translation>
    </message>
    <message>
        <source>first</source>
        <translation>第一个</translation>
    </message>
    <message>
        <source>first other token</source>
        <translation>首个不同的 token</translation>
    </message>
    <message>
        <source>first other token written</source>
        <translation>写出的首个不同的 token</translation>
    </message>
    <message>
        <source>first prompt</source>
        <translation>第一段提示词</translation>
    </message>
    <message>
        <source>first s</source>
        <translation>第一个（秒）</translation>
    </message>
    <message>
        <source>first token P50, P95 (ms)</source>
        <translation>首个 token P50、P95（毫秒）</translation>
    </message>
    <message>
        <source>first token in {time}</source>
        <translation>首个 token {time}</translation>
    </message>
    <message>
        <source>first token of a {kind}, read whole over shared</source>
        <translation>{kind}的首个 token，整段读取与共享之比</translation>
    </message>
    <message>
        <source>first token {seconds}</source>
        <translation>首个 token {seconds}</translation>
    </message>
    <message>
        <source>first token, branch</source>
        <translation>首个 token，分支</translation>
    </message>
    <message>
        <source>first token, chat</source>
        <translation>首个 token，对话</translation>
    </message>
    <message>
        <source>flash attention</source>
        <translation>flash attention</translation>
    </message>
    <message>
        <source>flash attention, f16</source>
        <translation>flash attention，f16</translation>
    </message>
    <message>
        <source>flash attention, q8_0</source>
        <translation>flash attention，q8_0</translation>
    </message>
    <message>
        <source>folded group</source>
        <translation>已折叠的组</translation>
    </message>
    <message>
        <source>folder for the report (default: in kvdesk&apos;s own)</source>
        <translation>报告的文件夹（默认在 kvdesk 自己的文件夹中）</translation>
    </message>
    <message>
        <source>footnotes</source>
        <translation>脚注</translation>
    </message>
    <message>
        <source>forgotten by hand</source>
        <translation>手动丢弃</translation>
    </message>
    <message>
        <source>form</source>
        <translation>形式</translation>
    </message>
    <message>
        <source>free</source>
        <translation>空闲</translation>
    </message>
    <message>
        <source>free runs</source>
        <translation>空闲段</translation>
    </message>
    <message>
        <source>free, read too</source>
        <translation>空闲，也会读取</translation>
    </message>
    <message>
        <source>fresh ids, cleaned</source>
        <translation>新 id，已清理</translation>
    </message>
    <message>
        <source>fresh ids, not cleaned</source>
        <translation>新 id，未清理</translation>
    </message>
    <message>
        <source>fresh ids, not cleaned, few cells</source>
        <translation>新 id，未清理，单元较少</translation>
    </message>
    <message>
        <source>from 0 when all was removed</source>
        <translation>全部移除后从 0 开始</translation>
    </message>
    <message>
        <source>from 0 when only the end was removed</source>
        <translation>只移除末尾后从 0 开始</translation>
    </message>
    <message>
        <source>from 0 with the old cells there</source>
        <translation>旧单元仍在时从 0 开始</translation>
    </message>
    <message>
        <source>from the memory&apos;s bandwidth alone</source>
        <translation>仅根据内存带宽估算</translation>
    </message>
    <message>
        <source>gap</source>
        <translation>间隔</translation>
    </message>
    <message>
        <source>gap P50</source>
        <translation>间隔 P50</translation>
    </message>
    <message>
        <source>gap P95</source>
        <translation>间隔 P95</translation>
    </message>
    <message>
        <source>gap P99</source>
        <translation>间隔 P99</translation>
    </message>
    <message>
        <source>gaps P50/95/99 ms</source>
        <translation>间隔 P50/95/99（毫秒）</translation>
    </message>
    <message>
        <source>get</source>
        <translation>get</translation>
    </message>
    <message>
        <source>get into new memory</source>
        <translation>get 到新内存</translation>
    </message>
    <message>
        <source>get of the long conversation</source>
        <translation>get 长的对话</translation>
    </message>
    <message>
        <source>get of the short conversation</source>
        <translation>get 短的对话</translation>
    </message>
    <message>
        <source>get, cells side by side</source>
        <translation>get，单元相邻</translation>
    </message>
    <message>
        <source>given back by closing</source>
        <translation>关闭时归还</translation>
    </message>
    <message>
        <source>given back by removal</source>
        <translation>移除时归还</translation>
    </message>
    <message>
        <source>given up</source>
        <translation>放弃的</translation>
    </message>
    <message>
        <source>grouped by conversation, the last used in front</source>
        <translation>按对话分组，最近使用的在前</translation>
    </message>
    <message>
        <source>grouped by sequence (#13497)</source>
        <translation>按序列分组 (#13497)</translation>
    </message>
    <message>
        <source>grows</source>
        <translation>增长</translation>
    </message>
    <message>
        <source>growth of a token&apos;s time</source>
        <translation>token 用时的增长</translation>
    </message>
    <message>
        <source>growth of the hole ratio</source>
        <translation>空洞率的增长</translation>
    </message>
    <message>
        <source>growth of the memory</source>
        <translation>内存的增长</translation>
    </message>
    <message>
        <source>hardly changes</source>
        <translation>几乎没有变化</translation>
    </message>
    <message>
        <source>head</source>
        <translation>head</translation>
    </message>
    <message>
        <source>headers and footers</source>
        <translation>页眉和页脚</translation>
    </message>
    <message>
        <source>held</source>
        <translation>占用</translation>
    </message>
    <message>
        <source>hexadecimal digits are missing</source>
        <translation>缺少十六进制数字</translation>
    </message>
    <message>
        <source>hidden messages</source>
        <translation>隐藏的消息</translation>
    </message>
    <message>
        <source>hidden text</source>
        <translation>隐藏的文本</translation>
    </message>
    <message>
        <source>high-water mark</source>
        <translation>高水位</translation>
    </message>
    <message>
        <source>high-water mark (cells)</source>
        <translation>高水位（单元）</translation>
    </message>
    <message>
        <source>history</source>
        <translation>历史</translation>
    </message>
    <message>
        <source>holds only a vocabulary, no model.</source>
        <translation>只含词表，没有模型。</translation>
    </message>
    <message>
        <source>holds only zeros, not a GGUF model: the download did not finish.</source>
        <translation>全部是零，不是 GGUF 模型：下载没有完成。</translation>
    </message>
    <message>
        <source>hole</source>
        <translation>空洞</translation>
    </message>
    <message>
        <source>hole ratio</source>
        <translation>空洞率</translation>
    </message>
    <message>
        <source>holes</source>
        <translation>空洞</translation>
    </message>
    <message>
        <source>holes filled (#12253)</source>
        <translation>填补空洞 (#12253)</translation>
    </message>
    <message>
        <source>holes, llama.cpp</source>
        <translation>空洞，llama.cpp</translation>
    </message>
    <message>
        <source>holes: {cache}</source>
        <translation>空洞：{cache}</translation>
    </message>
    <message>
        <source>how long that takes is measured when it starts</source>
        <translation>开始时测量所需的时间</translation>
    </message>
    <message>
        <source>how many operations ago the cell was written</source>
        <translation>单元是多少次操作之前写入的</translation>
    </message>
    <message>
        <source>how many sequences hold the cell</source>
        <translation>有多少个序列占用该单元</translation>
    </message>
    <message>
        <source>id reused, from 0, nothing removed</source>
        <translation>id 重用，从 0 开始，不移除</translation>
    </message>
    <message>
        <source>id reused, positions go on, nothing removed</source>
        <translation>id 重用，位置继续，不移除</translation>
    </message>
    <message>
        <source>ids</source>
        <translation>id</translation>
    </message>
    <message>
        <source>ids recycled, cleaned</source>
        <translation>id 循环使用，已清理</translation>
    </message>
    <message>
        <source>import once more what is here already</source>
        <translation>将这里已有的内容再导入一次</translation>
    </message>
    <message>
        <source>in all</source>
        <translation>合计</translation>
    </message>
    <message>
        <source>in each pause where fewer cells would be walked over</source>
        <translation>在每次能减少遍历单元的停顿时</translation>
    </message>
    <message>
        <source>in order, moved cells only</source>
        <translation>按顺序，只移动需要移动的单元</translation>
    </message>
    <message>
        <source>in the cache</source>
        <translation>在缓存中</translation>
    </message>
    <message>
        <source>in turn</source>
        <translation>依次</translation>
    </message>
    <message>
        <source>interrupted</source>
        <translation>已中断</translation>
    </message>
    <message>
        <source>is a 7-Zip archive, not a GGUF model.</source>
        <translation>是 7-Zip 压缩包，不是 GGUF 模型。</translation>
    </message>
    <message>
        <source>is a GGJT file, an old format that llama.cpp no longer reads.</source>
        <translation>是 GGJT 文件，llama.cpp 已不再读取这种旧格式。</translation>
    </message>
    <message>
        <source>is a GGLA adapter, an old format that llama.cpp no longer reads.</source>
        <translation>是 GGLA 适配器，llama.cpp 已不再读取这种旧格式。</translation>
    </message>
    <message>
        <source>is a GGMF file, an old format that llama.cpp no longer reads.</source>
        <translation>是 GGMF 文件，llama.cpp 已不再读取这种旧格式。</translation>
    </message>
    <message>
        <source>is a GGML file, an old format that llama.cpp no longer reads.</source>
        <translation>是 GGML 文件，llama.cpp 已不再读取这种旧格式。</translation>
    </message>
    <message>
        <source>is a GGUF for big-endian machines; this one is little-endian.</source>
        <translation>是用于大端机器的 GGUF；这台电脑是小端。</translation>
    </message>
    <message>
        <source>is a GGUF of the kind &quot;{architecture}&quot;, which this version of llama.cpp does not know.</source>
        <translation>是“{architecture}”类型的 GGUF，这个版本的 llama.cpp 不认识它。</translation>
    </message>
    <message>
        <source>is a GGUF that does not name its architecture, so it is no language model.</source>
        <translation>是没有注明架构的 GGUF，因此不是语言模型。</translation>
    </message>
    <message>
        <source>is a LoRA adapter; it changes a model and is none by itself.</source>
        <translation>是 LoRA 适配器；它用于修改模型，本身不是模型。</translation>
    </message>
    <message>
        <source>is a PyTorch checkpoint, not a GGUF model.</source>
        <translation>是 PyTorch 检查点，不是 GGUF 模型。</translation>
    </message>
    <message>
        <source>is a ZIP archive or PyTorch checkpoint, not a GGUF model.</source>
        <translation>是 ZIP 压缩包或 PyTorch 检查点，不是 GGUF 模型。</translation>
    </message>
    <message>
        <source>is a control vector; it steers a model and is none by itself.</source>
        <translation>是控制向量；它用于引导模型，本身不是模型。</translation>
    </message>
    <message>
        <source>is a draft model: it only helps another one to be faster.</source>
        <translation>是草稿模型：只用来加速另一个模型。</translation>
    </message>
    <message>
        <source>is a gzip archive, not a GGUF model.</source>
        <translation>是 gzip 压缩包，不是 GGUF 模型。</translation>
    </message>
    <message>
        <source>is a model that makes images or video, not a language model.</source>
        <translation>是生成图像或视频的模型，不是语言模型。</translation>
    </message>
    <message>
        <source>is a safetensors file, not a GGUF model; it has to be converted first.</source>
        <translation>是 safetensors 文件，不是 GGUF 模型；需要先转换。</translation>
    </message>
    <message>
        <source>is a speech model, not a language model.</source>
        <translation>是语音模型，不是语言模型。</translation>
    </message>
    <message>
        <source>is a text diffusion model, which keeps no KV cache; kvdesk cannot chat with it.</source>
        <translation>是文本扩散模型，没有 KV 缓存；kvdesk 无法与它对话。</translation>
    </message>
    <message>
        <source>is a text file, not a GGUF model.</source>
        <translation>是文本文件，不是 GGUF 模型。</translation>
    </message>
    <message>
        <source>is a web page, not a model: the download went wrong.</source>
        <translation>是网页，不是模型：下载出错了。</translation>
    </message>
    <message>
        <source>is an HDF5 file, not a GGUF model.</source>
        <translation>是 HDF5 文件，不是 GGUF 模型。</translation>
    </message>
    <message>
        <source>is an embedding model: it turns text into numbers and cannot answer.</source>
        <translation>是嵌入模型：它把文本变成数字，不能回答。</translation>
    </message>
    <message>
        <source>is an encoder-decoder model; kvdesk chats with decoder models.</source>
        <translation>是编码器-解码器模型；kvdesk 与仅解码器模型对话。</translation>
    </message>
    <message>
        <source>is an importance matrix, data for making quantized models.</source>
        <translation>是重要性矩阵，用于制作量化模型的数据。</translation>
    </message>
    <message>
        <source>is damaged: it does not say how many layers the model has.</source>
        <translation>已损坏：没有说明模型有多少层。</translation>
    </message>
    <message>
        <source>is gone</source>
        <translation>已消失</translation>
    </message>
    <message>
        <source>is not a GGUF model.</source>
        <translation>不是 GGUF 模型。</translation>
    </message>
    <message>
        <source>is only a Git LFS pointer; the model itself was not downloaded.</source>
        <translation>只是 Git LFS 指针；模型本身没有下载。</translation>
    </message>
    <message>
        <source>is the image or audio part of a model (mmproj); open the language model that belongs to it.</source>
        <translation>是模型的图像或音频部分（mmproj）；请打开与它对应的语言模型。</translation>
    </message>
    <message>
        <source>is the same</source>
        <translation>相同</translation>
    </message>
    <message>
        <source>it cannot be read</source>
        <translation>无法读取</translation>
    </message>
    <message>
        <source>it claims {n_keys:,} metadata entries</source>
        <translation>它声明有 {n_keys:,} 项元数据</translation>
    </message>
    <message>
        <source>it claims {n_tensors:,} tensors</source>
        <translation>它声明有 {n_tensors:,} 个张量</translation>
    </message>
    <message>
        <source>it ends with “\”</source>
        <translation>它以“\”结尾</translation>
    </message>
    <message>
        <source>it gave no reason.</source>
        <translation>没有给出原因。</translation>
    </message>
    <message>
        <source>it gives no reason</source>
        <translation>没有给出原因</translation>
    </message>
    <message>
        <source>it has a number that is none, or too long</source>
        <translation>其中的某个数字无效或太长</translation>
    </message>
    <message>
        <source>it has far too much metadata</source>
        <translation>元数据太多</translation>
    </message>
    <message>
        <source>it has more than {n:,} characters</source>
        <translation>它超过 {n:,} 个字符</translation>
    </message>
    <message>
        <source>it is a folder</source>
        <translation>它是文件夹</translation>
    </message>
    <message>
        <source>it is a list of names</source>
        <translation>它应为名称的列表</translation>
    </message>
    <message>
        <source>it is a list of schemas</source>
        <translation>它应为 schema 的列表</translation>
    </message>
    <message>
        <source>it is a list of values</source>
        <translation>它应为值的列表</translation>
    </message>
    <message>
        <source>it is a number</source>
        <translation>它应为数字</translation>
    </message>
    <message>
        <source>it is a text</source>
        <translation>它应为字符串</translation>
    </message>
    <message>
        <source>it is a whole number from 0 on</source>
        <translation>它应为不小于 0 的整数</translation>
    </message>
    <message>
        <source>it is an object</source>
        <translation>它应为对象</translation>
    </message>
    <message>
        <source>it is nested too deeply</source>
        <translation>嵌套太深</translation>
    </message>
    <message>
        <source>it is not a file</source>
        <translation>它不是文件</translation>
    </message>
    <message>
        <source>it refers to itself, and to nothing else</source>
        <translation>它只引用了自身</translation>
    </message>
    <message>
        <source>it was stopped</source>
        <translation>它被停止了</translation>
    </message>
    <message>
        <source>it was stopped in the middle, and no part of this model&apos;s state can be removed</source>
        <translation>它在中途停止，而这个模型的状态不能部分移除</translation>
    </message>
    <message>
        <source>its alignment is not a power of two</source>
        <translation>它的对齐不是 2 的幂</translation>
    </message>
    <message>
        <source>its cells are needed: {reason}</source>
        <translation>需要其单元：{reason}</translation>
    </message>
    <message>
        <source>its cells were changed by hand</source>
        <translation>其单元被手动更改</translation>
    </message>
    <message>
        <source>its header takes too long to read</source>
        <translation>读取文件头用时太长</translation>
    </message>
    <message>
        <source>its metadata has a value of unknown type {kind}</source>
        <translation>元数据中有未知类型 {kind} 的值</translation>
    </message>
    <message>
        <source>its metadata has an array of unknown type {kind}</source>
        <translation>元数据中有未知类型 {kind} 的数组</translation>
    </message>
    <message>
        <source>its metadata has two entries {key!r}</source>
        <translation>元数据中有两项 {key!r}</translation>
    </message>
    <message>
        <source>its place was taken by a copy</source>
        <translation>其位置被副本占用</translation>
    </message>
    <message>
        <source>its program may keep {n:,} cells</source>
        <translation>其程序最多可保留 {n:,} 个单元</translation>
    </message>
    <message>
        <source>its saved state</source>
        <translation>其保存的状态</translation>
    </message>
    <message>
        <source>its saved state is up to date</source>
        <translation>其保存的状态是最新的</translation>
    </message>
    <message>
        <source>its saved state takes its place</source>
        <translation>由其保存的状态代替</translation>
    </message>
    <message>
        <source>its seq_id is needed to compute in</source>
        <translation>需要其 seq_id 用于计算</translation>
    </message>
    <message>
        <source>its seq_id is needed: all {n_seq_max} (n_seq_max) are taken; least recently used</source>
        <translation>需要其 seq_id：全部 {n_seq_max} 个（n_seq_max）都已占用；最久未使用</translation>
    </message>
    <message>
        <source>its state was saved</source>
        <translation>其状态已保存</translation>
    </message>
    <message>
        <source>journal</source>
        <translation>操作记录</translation>
    </message>
    <message>
        <source>judged by</source>
        <translation>判据</translation>
    </message>
    <message>
        <source>just written</source>
        <translation>刚刚写入</translation>
    </message>
    <message>
        <source>key that clients must send; may be repeated</source>
        <translation>客户端必须发送的密钥；可以多次给出</translation>
    </message>
    <message>
        <source>known: {cache}</source>
        <translation>已知：{cache}</translation>
    </message>
    <message>
        <source>kvdesk and its parts</source>
        <translation>kvdesk 及其组成部分</translation>
    </message>
    <message>
        <source>kvdesk chats</source>
        <translation>kvdesk 对话</translation>
    </message>
    <message>
        <source>kvdesk chats.md</source>
        <translation>kvdesk 对话.md</translation>
    </message>
    <message>
        <source>kvdesk does not know how positions are moved in this memory.</source>
        <translation>kvdesk 不知道这种记忆中的位置如何移动。</translation>
    </message>
    <message>
        <source>kvdesk does not know how this memory is saved, so it cannot check it.</source>
        <translation>kvdesk 不知道这种记忆如何保存，因此无法检查。</translation>
    </message>
    <message>
        <source>kvdesk does not know the rules of this memory: {reason}.</source>
        <translation>kvdesk 不知道这种记忆的规则：{reason}。</translation>
    </message>
    <message>
        <source>kvdesk does not know the rules of this model&apos;s memory ({reason}).</source>
        <translation>kvdesk 不知道这个模型的记忆的规则（{reason}）。</translation>
    </message>
    <message>
        <source>kvdesk ended before this answer was complete.</source>
        <translation>kvdesk 在这个回答完成之前已结束。</translation>
    </message>
    <message>
        <source>kvdesk is open already, but its window does not answer.</source>
        <translation>kvdesk 已经打开，但它的窗口没有响应。</translation>
    </message>
    <message>
        <source>kvdesk is open already; its window was brought to the front.
</source>
        <translation>kvdesk 已经打开；已将其窗口移到最前面。
</translation>
    </message>
    <message>
        <source>kvdesk takes at most {most:.2g} times the least; {near:g} counts as near it. Below that: {below}.</source>
        <translation>kvdesk 的用时最多是最少用时的 {most:.2g} 倍；比值达到 {near:g} 算作接近。低于它的有：{below}。</translation>
    </message>
    <message>
        <source>kvdesk takes at most {most:.2g} times the least; {near:g} counts as near it. Nothing is below that.</source>
        <translation>kvdesk 的用时最多是最少用时的 {most:.2g} 倍；比值达到 {near:g} 算作接近。没有低于它的。</translation>
    </message>
    <message>
        <source>kvdesk was closed, and {what} could not be saved. {why}
</source>
        <translation>kvdesk 已关闭，{what}无法保存。{why}
</translation>
    </message>
    <message>
        <source>kvdesk was closed.</source>
        <translation>kvdesk 已关闭。</translation>
    </message>
    <message>
        <source>kvdesk was not started. Nothing was changed.</source>
        <translation>kvdesk 没有启动。没有任何更改。</translation>
    </message>
    <message>
        <source>kvdesk&apos;s estimate</source>
        <translation>kvdesk 的估算</translation>
    </message>
    <message>
        <source>kvdesk&apos;s time has its map, its comparisons and its audit in it. A copy for undo is made only by hand.</source>
        <translation>kvdesk 的用时包括单元图、比较和核对。只有手动操作才会生成用于撤销的副本。</translation>
    </message>
    <message>
        <source>kvdesk, ms</source>
        <translation>kvdesk（毫秒）</translation>
    </message>
    <message>
        <source>larger</source>
        <translation>变大</translation>
    </message>
    <message>
        <source>largest free run</source>
        <translation>最大空闲段</translation>
    </message>
    <message>
        <source>last / first</source>
        <translation>最后 / 第一</translation>
    </message>
    <message>
        <source>last over first request</source>
        <translation>最后一个与第一个请求之比</translation>
    </message>
    <message>
        <source>last over first request: {name}</source>
        <translation>最后一个与第一个请求之比：{name}</translation>
    </message>
    <message>
        <source>last request</source>
        <translation>最后一个请求</translation>
    </message>
    <message>
        <source>last s</source>
        <translation>最后一个（秒）</translation>
    </message>
    <message>
        <source>last {rolling} gaps</source>
        <translation>最近 {rolling} 个间隔</translation>
    </message>
    <message>
        <source>layers</source>
        <translation>层数</translation>
    </message>
    <message>
        <source>least</source>
        <translation>最小</translation>
    </message>
    <message>
        <source>left out: {parts}</source>
        <translation>未包含：{parts}</translation>
    </message>
    <message>
        <source>less than 0.1 s</source>
        <translation>不到 0.1 秒</translation>
    </message>
    <message>
        <source>line {line}, column {column}</source>
        <translation>第 {line} 行，第 {column} 列</translation>
    </message>
    <message>
        <source>list the chats instead: id, day, title</source>
        <translation>只列出对话：id、日期、标题</translation>
    </message>
    <message>
        <source>list: the experiments and their parameters; run NAME: one of them; compare A B: two results of one</source>
        <translation>list：实验及其参数；run NAME：运行其中一个；compare A B：比较同一实验的两个结果</translation>
    </message>
    <message>
        <source>llama-server, build {build}.</source>
        <translation>llama-server，版本 {build}。</translation>
    </message>
    <message>
        <source>llama.cpp cannot load {file}: {reason}</source>
        <translation>llama.cpp 无法加载 {file}：{reason}</translation>
    </message>
    <message>
        <source>llama.cpp cannot make a context of {n:,} cells with K as {type_k} and V as {type_v}.</source>
        <translation>llama.cpp 无法创建 {n:,} 个单元、K 为 {type_k}、V 为 {type_v} 的上下文。</translation>
    </message>
    <message>
        <source>llama.cpp cannot use the grammar.</source>
        <translation>llama.cpp 无法使用这个语法。</translation>
    </message>
    <message>
        <source>llama.cpp could not compute the next token (code {rc}).</source>
        <translation>llama.cpp 无法计算下一个 token（代码 {rc}）。</translation>
    </message>
    <message>
        <source>llama.cpp could not process a batch (code {rc}).</source>
        <translation>llama.cpp 无法处理一个批次（代码 {rc}）。</translation>
    </message>
    <message>
        <source>llama.cpp could not read on in a window that has room (code {rc}).</source>
        <translation>llama.cpp 无法在有空间的窗口中继续读取（代码 {rc}）。</translation>
    </message>
    <message>
        <source>llama.cpp could not read {n:,} tokens: {why}.</source>
        <translation>llama.cpp 无法读取 {n:,} 个 token：{why}。</translation>
    </message>
    <message>
        <source>llama.cpp did not accept the saved state; the cache is empty now.</source>
        <translation>llama.cpp 没有接受保存的状态；缓存现在为空。</translation>
    </message>
    <message>
        <source>llama.cpp did not decode a part of the history: {refusal}.</source>
        <translation>llama.cpp 没有解码历史的一部分：{refusal}。</translation>
    </message>
    <message>
        <source>llama.cpp did not take back the state of its own cache.</source>
        <translation>llama.cpp 没有接受自己缓存的状态。</translation>
    </message>
    <message>
        <source>llama.cpp does not shift positions of {architecture} models: it would abort.</source>
        <translation>llama.cpp 不会移动 {architecture} 模型的位置：会中止。</translation>
    </message>
    <message>
        <source>llama.cpp found no room for {n} more tokens.</source>
        <translation>llama.cpp 没有找到空间放入另外 {n} 个 token。</translation>
    </message>
    <message>
        <source>llama.cpp has no room for a saved state of {n:,} tokens.</source>
        <translation>llama.cpp 没有空间容纳 {n:,} 个 token 的保存状态。</translation>
    </message>
    <message>
        <source>llama.cpp refuses {n} of the suspects with an error, and the right way stays at {ratio} times.</source>
        <translation>llama.cpp 以错误拒绝了其中 {n} 个嫌疑，正确的方式保持在 {ratio} 倍。</translation>
    </message>
    <message>
        <source>llama.cpp saved {copied:,} of {size:,} bytes of its state.</source>
        <translation>llama.cpp 只保存了其状态 {size:,} 字节中的 {copied:,} 字节。</translation>
    </message>
    <message>
        <source>llama.cpp&apos;s cells (recorded)</source>
        <translation>llama.cpp 的单元（记录）</translation>
    </message>
    <message>
        <source>llama.cpp&apos;s name: {name}</source>
        <translation>llama.cpp 中的名称：{name}</translation>
    </message>
    <message>
        <source>llama.cpp&apos;s samplers, and its defaults</source>
        <translation>llama.cpp 的采样器及其默认值</translation>
    </message>
    <message>
        <source>llama_decode returned -1: the batch is not valid, nothing happened</source>
        <translation>llama_decode 返回 -1：批次无效，什么也没有发生</translation>
    </message>
    <message>
        <source>llama_decode returned -2: the graph could not be allocated</source>
        <translation>llama_decode 返回 -2：无法分配计算图</translation>
    </message>
    <message>
        <source>llama_decode returned -3: the graph could not be computed</source>
        <translation>llama_decode 返回 -3：无法计算计算图</translation>
    </message>
    <message>
        <source>llama_decode returned 0: every token is in the cache</source>
        <translation>llama_decode 返回 0：每个 token 都在缓存中</translation>
    </message>
    <message>
        <source>llama_decode returned 1: no cells for the batch, nothing was placed (K-shifts are applied)</source>
        <translation>llama_decode 返回 1：没有单元可放这个批次，什么也没有放置（K-shift 已应用）</translation>
    </message>
    <message>
        <source>llama_decode returned 2: stopped by the abort callback; finished ubatches stay</source>
        <translation>llama_decode 返回 2：被中止回调停止；已完成的 ubatch 保留</translation>
    </message>
    <message>
        <source>llama_decode returned another code</source>
        <translation>llama_decode 返回了其他代码</translation>
    </message>
    <message>
        <source>llama_decode returned {rc}.</source>
        <translation>llama_decode 返回 {rc}。</translation>
    </message>
    <message>
        <source>llama_memory_seq_rm leaves {left:.0f} of {filled:.0f} cells in use and gives {freed} back, of {held:.3g} MB of K and V in the filled cells. Filled again it takes {grown} more than the first time; the end of the context gives {closed} back.</source>
        <translation>llama_memory_seq_rm 之后，{filled:.0f} 个单元中仍有 {left:.0f} 个在使用，归还 {freed}，而已填充单元的 K 和 V 共 {held:.3g} MB。再次填充时比第一次多占用 {grown}；关闭上下文时归还 {closed}。</translation>
    </message>
    <message>
        <source>llama_memory_seq_rm leaves {left:.0f} of {filled:.0f} cells in use and gives {freed} back, of {held:.3g} MB of K and V in the filled cells: the buffer of {kv:.3g} MB belongs to the context from its making to its end, which gives {closed} back. Filled again it grows by {grown}: what was removed is used again.</source>
        <translation>llama_memory_seq_rm 之后，{filled:.0f} 个单元中仍有 {left:.0f} 个在使用，归还 {freed}，而已填充单元的 K 和 V 共 {held:.3g} MB：{kv:.3g} MB 的缓冲区从创建到结束都属于上下文，关闭上下文时归还 {closed}。再次填充时增加 {grown}：被移除的部分得到重新使用。</translation>
    </message>
    <message>
        <source>llama_memory_seq_rm leaves {left:.0f} of {filled:.0f} cells in use and gives {freed} back, of {held:.3g} MB of K and V in the filled cells: the buffer of {kv:.3g} MB belongs to the context from its making to its end, which gives {closed} back; the rest stays with the C library, which keeps small blocks. Filled again it grows by {grown}: what was removed is used again.</source>
        <translation>llama_memory_seq_rm 之后，{filled:.0f} 个单元中仍有 {left:.0f} 个在使用，归还 {freed}，而已填充单元的 K 和 V 共 {held:.3g} MB：{kv:.3g} MB 的缓冲区从创建到结束都属于上下文，关闭上下文时归还 {closed}；其余留在 C 库中，它会保留小块内存。再次填充时增加 {grown}：被移除的部分得到重新使用。</translation>
    </message>
    <message>
        <source>llama_memory_seq_rm leaves {left:.0f} of {filled:.0f} cells in use. Whether it gives memory back cannot be told: the {held:.2g} MB of K and V in the filled cells are too little beside what a process&apos;s memory changes by itself. Choose more tokens, or a larger model.</source>
        <translation>llama_memory_seq_rm 之后，{filled:.0f} 个单元中仍有 {left:.0f} 个在使用。无法判断它是否归还内存：与进程内存自身的变化相比，已填充单元的 K 和 V 只有 {held:.2g} MB，太少了。请选择更多 token 或更大的模型。</translation>
    </message>
    <message>
        <source>llama_memory_seq_rm returned false: this memory cannot remove a part.</source>
        <translation>llama_memory_seq_rm 返回 false：这种记忆不能移除一部分。</translation>
    </message>
    <message>
        <source>loading {name}</source>
        <translation>正在加载 {name}</translation>
    </message>
    <message>
        <source>long</source>
        <translation>详细</translation>
    </message>
    <message>
        <source>longest first</source>
        <translation>最长的在前</translation>
    </message>
    <message>
        <source>longest gap ms</source>
        <translation>最长间隔（毫秒）</translation>
    </message>
    <message>
        <source>longest gap, small pieces over the whole prompt</source>
        <translation>最长间隔，小块与整段之比</translation>
    </message>
    <message>
        <source>longest wait, ms</source>
        <translation>最长等待（毫秒）</translation>
    </message>
    <message>
        <source>made</source>
        <translation>已创建</translation>
    </message>
    <message>
        <source>map mirrored since operation {operation}{doubt}</source>
        <translation>单元图自操作 {operation} 起镜像{doubt}</translation>
    </message>
    <message>
        <source>map not verified: {detail}</source>
        <translation>单元图未验证：{detail}</translation>
    </message>
    <message>
        <source>map rebuilt from the engine&apos;s state</source>
        <translation>单元图已根据引擎的状态重建</translation>
    </message>
    <message>
        <source>map verified at operation {operation}{rebuilt}</source>
        <translation>单元图已在操作 {operation} 验证{rebuilt}</translation>
    </message>
    <message>
        <source>may not start anywhere</source>
        <translation>不能从任意位置开始</translation>
    </message>
    <message>
        <source>may start anywhere</source>
        <translation>可以从任意位置开始</translation>
    </message>
    <message>
        <source>mean wait ms</source>
        <translation>平均等待（毫秒）</translation>
    </message>
    <message>
        <source>mean wait, shortest first over as they came</source>
        <translation>平均等待，最短的在前与按到来顺序之比</translation>
    </message>
    <message>
        <source>measured</source>
        <translation>实测</translation>
    </message>
    <message>
        <source>measured value</source>
        <translation>实测值</translation>
    </message>
    <message>
        <source>measured with a model that ran here</source>
        <translation>用在这里运行过的一个模型测得</translation>
    </message>
    <message>
        <source>measurements, as ratios within one run</source>
        <translation>测量值，以同一次运行中的比值表示</translation>
    </message>
    <message>
        <source>median</source>
        <translation>中位数</translation>
    </message>
    <message>
        <source>memcpy</source>
        <translation>memcpy</translation>
    </message>
    <message>
        <source>memcpy again at once</source>
        <translation>立即再次 memcpy</translation>
    </message>
    <message>
        <source>memcpy into new memory</source>
        <translation>memcpy 到新内存</translation>
    </message>
    <message>
        <source>memory MB</source>
        <translation>内存（MB）</translation>
    </message>
    <message>
        <source>memory for saved conversations (default: twice the K and V of the context, and no more than set)</source>
        <translation>保存会话所用的内存（默认：上下文 K 和 V 的两倍，且不超过所设的值）</translation>
    </message>
    <message>
        <source>message</source>
        <translation>消息</translation>
    </message>
    <message>
        <source>message {number} of {n}</source>
        <translation>第 {number} 条消息，共 {n} 条</translation>
    </message>
    <message>
        <source>message {n}</source>
        <translation>第 {n} 条消息</translation>
    </message>
    <message>
        <source>messages</source>
        <translation>消息</translation>
    </message>
    <message>
        <source>messages read</source>
        <translation>读取的消息</translation>
    </message>
    <message>
        <source>minutes</source>
        <translation>分钟</translation>
    </message>
    <message>
        <source>mismatches: {mismatches}</source>
        <translation>不一致：{mismatches}</translation>
    </message>
    <message>
        <source>model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>more scattered</source>
        <translation>变得更分散</translation>
    </message>
    <message>
        <source>more than {n:,} are not possible</source>
        <translation>不能超过 {n:,}</translation>
    </message>
    <message>
        <source>more than {n:,} repetitions</source>
        <translation>重复超过 {n:,} 次</translation>
    </message>
    <message>
        <source>more threads than cores</source>
        <translation>线程多于核心</translation>
    </message>
    <message>
        <source>more threads with each request</source>
        <translation>每个请求增加线程</translation>
    </message>
    <message>
        <source>most</source>
        <translation>最大</translation>
    </message>
    <message>
        <source>most sequences in the cache (default 8)</source>
        <translation>缓存中的最大序列数（默认 8）</translation>
    </message>
    <message>
        <source>most tokens computed at once (default 512)</source>
        <translation>一次计算的最大 token 数（默认 512）</translation>
    </message>
    <message>
        <source>most tokens in one llama_decode (default 512)</source>
        <translation>一次 llama_decode 的最大 token 数（默认 512）</translation>
    </message>
    <message>
        <source>moved cells rotated</source>
        <translation>已移动单元已旋转</translation>
    </message>
    <message>
        <source>ms</source>
        <translation>毫秒</translation>
    </message>
    <message>
        <source>ms for a token</source>
        <translation>每个 token 的毫秒数</translation>
    </message>
    <message>
        <source>n is {n:.0f}, the far position {far:.0f}, n_ctx 1024.</source>
        <translation>n 为 {n:.0f}，远处的位置为 {far:.0f}，n_ctx 为 1024。</translation>
    </message>
    <message>
        <source>n_ctx</source>
        <translation>n_ctx</translation>
    </message>
    <message>
        <source>n_ctx (cells)</source>
        <translation>n_ctx（单元）</translation>
    </message>
    <message>
        <source>n_ctx is {n_ctx:,}: llama.cpp rounds {n_ctx2:,} up.</source>
        <translation>n_ctx 为 {n_ctx:,}：llama.cpp 对 {n_ctx2:,} 向上取整。</translation>
    </message>
    <message>
        <source>n_kv = min(N, max(256, H rounded up to 256)): the cells that attention reads</source>
        <translation>n_kv = min(N, max(256, H 向上取整到 256))：注意力读取的单元</translation>
    </message>
    <message>
        <source>n_kv x the row of one cell in all layers: what attention reads for a token</source>
        <translation>n_kv x 所有层中一个单元的行：注意力为一个 token 读取的量</translation>
    </message>
    <message>
        <source>n_kv: the cells that attention reads</source>
        <translation>n_kv：注意力读取的单元</translation>
    </message>
    <message>
        <source>n_kv: the cells that attention reads for the next token</source>
        <translation>n_kv：注意力为下一个 token 读取的单元</translation>
    </message>
    <message>
        <source>n_kv: the cells that attention reads: min(N, max(256, H rounded up to 256))</source>
        <translation>n_kv：注意力读取的单元，min(N, max(256, H 向上取整到 256))</translation>
    </message>
    <message>
        <source>n_seq_max</source>
        <translation>n_seq_max</translation>
    </message>
    <message>
        <source>name of this computer that clients may use</source>
        <translation>客户端可以使用的这台电脑的名称</translation>
    </message>
    <message>
        <source>never</source>
        <translation>从不</translation>
    </message>
    <message>
        <source>next</source>
        <translation>下一个</translation>
    </message>
    <message>
        <source>next …</source>
        <translation>下一个 …</translation>
    </message>
    <message>
        <source>no</source>
        <translation>否</translation>
    </message>
    <message>
        <source>no cells are left</source>
        <translation>没有剩余的单元</translation>
    </message>
    <message>
        <source>no conversation</source>
        <translation>没有对话</translation>
    </message>
    <message>
        <source>no flash attention</source>
        <translation>无 flash attention</translation>
    </message>
    <message>
        <source>no flash attention, K q8_0</source>
        <translation>无 flash attention，K q8_0</translation>
    </message>
    <message>
        <source>no flash attention, f16</source>
        <translation>无 flash attention，f16</translation>
    </message>
    <message>
        <source>no longer recorded</source>
        <translation>不再有记录</translation>
    </message>
    <message>
        <source>no measurable loss</source>
        <translation>没有可测量的损失</translation>
    </message>
    <message>
        <source>no memory</source>
        <translation>没有内存</translation>
    </message>
    <message>
        <source>no page yet</source>
        <translation>还没有页</translation>
    </message>
    <message>
        <source>no part of this model&apos;s state can be removed</source>
        <translation>这个模型的状态不能部分移除</translation>
    </message>
    <message>
        <source>no room</source>
        <translation>没有空间</translation>
    </message>
    <message>
        <source>no sequence</source>
        <translation>没有序列</translation>
    </message>
    <message>
        <source>no text is all that it asks for</source>
        <translation>没有能满足全部要求的文本</translation>
    </message>
    <message>
        <source>no text matches it</source>
        <translation>没有与它匹配的文本</translation>
    </message>
    <message>
        <source>no value is left that fits</source>
        <translation>没有符合要求的值</translation>
    </message>
    <message>
        <source>no value is of all its types</source>
        <translation>没有同时属于其所有类型的值</translation>
    </message>
    <message>
        <source>no whole number is within its limits</source>
        <translation>其范围内没有整数</translation>
    </message>
    <message>
        <source>none</source>
        <translation>无</translation>
    </message>
    <message>
        <source>none of its cells</source>
        <translation>没有用到它的单元</translation>
    </message>
    <message>
        <source>none refused</source>
        <translation>没有被拒绝</translation>
    </message>
    <message>
        <source>not every layer keeps every cell (sliding windows, recurrent layers, heads that differ)</source>
        <translation>并非每一层都保留每个单元（滑动窗口、循环层、不同的 head）</translation>
    </message>
    <message>
        <source>not in context</source>
        <translation>不在上下文中</translation>
    </message>
    <message>
        <source>not in the cache</source>
        <translation>不在缓存中</translation>
    </message>
    <message>
        <source>not judged</source>
        <translation>未判断</translation>
    </message>
    <message>
        <source>not known</source>
        <translation>未知</translation>
    </message>
    <message>
        <source>not measured yet</source>
        <translation>尚未测量</translation>
    </message>
    <message>
        <source>nothing</source>
        <translation>无</translation>
    </message>
    <message>
        <source>nothing before them stays</source>
        <translation>之前的内容都不保留</translation>
    </message>
    <message>
        <source>nothing of it can be reused</source>
        <translation>没有可以复用的内容</translation>
    </message>
    <message>
        <source>now</source>
        <translation>现在</translation>
    </message>
    <message>
        <source>occupied</source>
        <translation>已占用</translation>
    </message>
    <message>
        <source>of cache: {cache}; of engine: {engine}; of ui: {ui}</source>
        <translation>用于 cache：{cache}；用于 engine：{engine}；用于 ui：{ui}</translation>
    </message>
    <message>
        <source>of engine and ui: rounds of this kvdesk and of that in another folder in turns, and how many times as good each figure is now (--rounds: of each, default 5)</source>
        <translation>用于 engine 和 ui：这个 kvdesk 与另一个文件夹中的 kvdesk 交替测量各轮，并给出每个数值现在是其多少倍（--rounds：各自的轮数，默认 5）</translation>
    </message>
    <message>
        <source>of serve: another server, such as http://…:8081/v1</source>
        <translation>用于 serve：另一个服务器，例如 http://…:8081/v1</translation>
    </message>
    <message>
        <source>of the cache, and of the memory for saved conversations, that one program may keep (default 100)</source>
        <translation>一个程序最多可占用缓存和会话保存内存的百分比（默认 100）</translation>
    </message>
    <message>
        <source>of {capacity}</source>
        <translation>/ {capacity}</translation>
    </message>
    <message>
        <source>of {n} tokens</source>
        <translation>/ {n} 个 token</translation>
    </message>
    <message>
        <source>off</source>
        <translation>关闭</translation>
    </message>
    <message>
        <source>on</source>
        <translation>开启</translation>
    </message>
    <message>
        <source>one JSON object</source>
        <translation>一个 JSON 对象</translation>
    </message>
    <message>
        <source>one JSON object a line and turn</source>
        <translation>每轮一行一个 JSON 对象</translation>
    </message>
    <message>
        <source>one JSON object on standard output</source>
        <translation>在标准输出上输出一个 JSON 对象</translation>
    </message>
    <message>
        <source>one id, cleaned</source>
        <translation>单一 id，已清理</translation>
    </message>
    <message>
        <source>one id, not cleaned</source>
        <translation>单一 id，未清理</translation>
    </message>
    <message>
        <source>one position left out behind the last</source>
        <translation>最后位置之后漏掉一个位置</translation>
    </message>
    <message>
        <source>one stream for each sequence (kv_unified off)</source>
        <translation>每个序列一个 stream（关闭 kv_unified）</translation>
    </message>
    <message>
        <source>one token</source>
        <translation>一个 token</translation>
    </message>
    <message>
        <source>one token at depth {depth:,}, round {n}</source>
        <translation>深度 {depth:,} 处的一个 token，第 {n} 轮</translation>
    </message>
    <message>
        <source>one token, round {n}</source>
        <translation>一个 token，第 {n} 轮</translation>
    </message>
    <message>
        <source>one token, {size:,} over {least:,} cells</source>
        <translation>一个 token，{size:,} 与 {least:,} 个单元之比</translation>
    </message>
    <message>
        <source>only this one, by its id or whole title; may be repeated</source>
        <translation>只导出这一个，按 id 或完整标题；可以重复</translation>
    </message>
    <message>
        <source>open</source>
        <translation>已展开</translation>
    </message>
    <message>
        <source>open now</source>
        <translation>当前打开</translation>
    </message>
    <message>
        <source>opened here</source>
        <translation>在这里打开过</translation>
    </message>
    <message>
        <source>operation</source>
        <translation>操作</translation>
    </message>
    <message>
        <source>operation {operation}  ·  {took}</source>
        <translation>操作 {operation}  ·  {took}</translation>
    </message>
    <message>
        <source>operations (default 2000)</source>
        <translation>操作数（默认 2000）</translation>
    </message>
    <message>
        <source>operations {first:,} to {last:,}</source>
        <translation>操作 {first:,} 到 {last:,}</translation>
    </message>
    <message>
        <source>options</source>
        <translation>选项</translation>
    </message>
    <message>
        <source>order</source>
        <translation>顺序</translation>
    </message>
    <message>
        <source>other</source>
        <translation>其他</translation>
    </message>
    <message>
        <source>other answers were computed at the same time</source>
        <translation>同时在计算其他回答</translation>
    </message>
    <message>
        <source>other content</source>
        <translation>其他内容</translation>
    </message>
    <message>
        <source>other processes take {others:.1f} of {n_cores} cores</source>
        <translation>其他进程占用 {n_cores} 个核心中的 {others:.1f} 个</translation>
    </message>
    <message>
        <source>other programs used {used} of {n} processors</source>
        <translation>其他程序占用了 {n} 个处理器中的 {used} 个</translation>
    </message>
    <message>
        <source>others</source>
        <translation>其他</translation>
    </message>
    <message>
        <source>out of the sliding window: overwritten next</source>
        <translation>已离开滑动窗口：接下来会被覆盖</translation>
    </message>
    <message>
        <source>output buffer</source>
        <translation>输出缓冲区</translation>
    </message>
    <message>
        <source>over K and V f16</source>
        <translation>与 K 和 V 为 f16 之比</translation>
    </message>
    <message>
        <source>over a threshold</source>
        <translation>超过阈值</translation>
    </message>
    <message>
        <source>over a threshold of 0.1, before a decode (llama.cpp until #15473)</source>
        <translation>超过阈值 0.1，在 decode 之前（#15473 之前的 llama.cpp）</translation>
    </message>
    <message>
        <source>over bare</source>
        <translation>与空上下文之比</translation>
    </message>
    <message>
        <source>over side by side</source>
        <translation>与相邻时之比</translation>
    </message>
    <message>
        <source>over the best</source>
        <translation>与最佳值之比</translation>
    </message>
    <message>
        <source>over {n:,}</source>
        <translation>与 {n:,} 之比</translation>
    </message>
    <message>
        <source>over {n:,} cells</source>
        <translation>与 {n:,} 个单元之比</translation>
    </message>
    <message>
        <source>overwritten next</source>
        <translation>接下来会被覆盖</translation>
    </message>
    <message>
        <source>page not full</source>
        <translation>页未满</translation>
    </message>
    <message>
        <source>page {page}</source>
        <translation>页 {page}</translation>
    </message>
    <message>
        <source>pages of a browser that may ask; * is all</source>
        <translation>允许请求的浏览器页面；* 表示全部</translation>
    </message>
    <message>
        <source>parentheses are nested too deeply</source>
        <translation>括号嵌套太深</translation>
    </message>
    <message>
        <source>parts, ms</source>
        <translation>各部分（毫秒）</translation>
    </message>
    <message>
        <source>pasted text</source>
        <translation>粘贴的文本</translation>
    </message>
    <message>
        <source>paused · {amount}</source>
        <translation>已暂停 · {amount}</translation>
    </message>
    <message>
        <source>pays after tokens</source>
        <translation>多少 token 后合算</translation>
    </message>
    <message>
        <source>permute</source>
        <translation>重排</translation>
    </message>
    <message>
        <source>perplexity</source>
        <translation>困惑度</translation>
    </message>
    <message>
        <source>perplexity (over f16)</source>
        <translation>困惑度（与 f16 之比）</translation>
    </message>
    <message>
        <source>perplexity over everything kept</source>
        <translation>困惑度，与全部保留之比</translation>
    </message>
    <message>
        <source>perplexity over f16</source>
        <translation>困惑度，与 f16 之比</translation>
    </message>
    <message>
        <source>perplexity so far</source>
        <translation>到目前为止的困惑度</translation>
    </message>
    <message>
        <source>perplexity, {policy} over {over}</source>
        <translation>困惑度，{policy}与{over}之比</translation>
    </message>
    <message>
        <source>pictures</source>
        <translation>图片</translation>
    </message>
    <message>
        <source>pieces</source>
        <translation>块数</translation>
    </message>
    <message>
        <source>pieces alone</source>
        <translation>只有分块</translation>
    </message>
    <message>
        <source>pieces among them</source>
        <translation>分块夹在其间</translation>
    </message>
    <message>
        <source>pinned</source>
        <translation>已固定</translation>
    </message>
    <message>
        <source>place in the chunk (tokens)</source>
        <translation>在分块中的位置（token）</translation>
    </message>
    <message>
        <source>policy</source>
        <translation>策略</translation>
    </message>
    <message>
        <source>port (default {default})</source>
        <translation>端口（默认 {default}）</translation>
    </message>
    <message>
        <source>position</source>
        <translation>位置</translation>
    </message>
    <message>
        <source>position {low}</source>
        <translation>位置 {low}</translation>
    </message>
    <message>
        <source>position {pos}</source>
        <translation>位置 {pos}</translation>
    </message>
    <message>
        <source>positions</source>
        <translation>位置</translation>
    </message>
    <message>
        <source>positions that go back inside a batch</source>
        <translation>批次内位置回退</translation>
    </message>
    <message>
        <source>positions {low} to {high}</source>
        <translation>位置 {low} 到 {high}</translation>
    </message>
    <message>
        <source>prefill</source>
        <translation>预填充</translation>
    </message>
    <message>
        <source>prefill, last request</source>
        <translation>预填充，上一个请求</translation>
    </message>
    <message>
        <source>prefilled ahead, between answers</source>
        <translation>在回答之间提前预填充</translation>
    </message>
    <message>
        <source>prefilled {prefilled_tokens}</source>
        <translation>预填充了 {prefilled_tokens}</translation>
    </message>
    <message>
        <source>prefix hits</source>
        <translation>前缀命中</translation>
    </message>
    <message>
        <source>prefix hits, cumulative</source>
        <translation>前缀命中，累计</translation>
    </message>
    <message>
        <source>prefix hits, last request</source>
        <translation>前缀命中，上一个请求</translation>
    </message>
    <message>
        <source>private resident MB</source>
        <translation>私有常驻内存（MB）</translation>
    </message>
    <message>
        <source>program</source>
        <translation>程序</translation>
    </message>
    <message>
        <source>prompt</source>
        <translation>提示词</translation>
    </message>
    <message>
        <source>prompt read ms</source>
        <translation>读完提示词（毫秒）</translation>
    </message>
    <message>
        <source>prompt read, small pieces over the whole prompt</source>
        <translation>读取提示词，小块与整段之比</translation>
    </message>
    <message>
        <source>prompt tokens</source>
        <translation>提示词 token</translation>
    </message>
    <message>
        <source>prompt tokens computed, blocks of 16 over llama.cpp</source>
        <translation>计算的提示词 token，块为 16 与 llama.cpp 之比</translation>
    </message>
    <message>
        <source>prompt tokens computed, tree over llama.cpp</source>
        <translation>计算的提示词 token，前缀树与 llama.cpp 之比</translation>
    </message>
    <message>
        <source>prompt tokens known</source>
        <translation>已知的提示词 token</translation>
    </message>
    <message>
        <source>prompt tokens read</source>
        <translation>读取的提示词 token</translation>
    </message>
    <message>
        <source>prompt {prompt} tokens: {reused} were in the cache, {prefilled} were computed{read}
answer {generated} tokens{decoded}
{continued}from sending to the first token {ttft}
sequence {seq_id}; cells used {used}, high water {high_water}, n_kv {n_kv}{seed}</source>
        <translation>提示词 {prompt} 个 token：{reused} 个在缓存中，{prefilled} 个经过计算{read}
回答 {generated} 个 token{decoded}
{continued}从发送到首个 token {ttft}
序列 {seq_id}；已用单元 {used}，高水位 {high_water}，n_kv {n_kv}{seed}</translation>
    </message>
    <message>
        <source>prompt, in order</source>
        <translation>提示词，按顺序</translation>
    </message>
    <message>
        <source>prompts</source>
        <translation>提示词</translation>
    </message>
    <message>
        <source>prompts in an order, round {n}</source>
        <translation>按某种顺序的提示词，第 {n} 轮</translation>
    </message>
    <message>
        <source>quiet</source>
        <translation>安静</translation>
    </message>
    <message>
        <source>radix tree, requests: SGLang (simulated)</source>
        <translation>前缀树，请求：SGLang（模拟）</translation>
    </message>
    <message>
        <source>random operations on the cache, each compared with the engine cell by cell</source>
        <translation>对缓存进行随机操作，每次都逐个单元与引擎比较</translation>
    </message>
    <message>
        <source>read again after a rebuild</source>
        <translation>重建后重新读取</translation>
    </message>
    <message>
        <source>read as {encoding}</source>
        <translation>按 {encoding} 读取</translation>
    </message>
    <message>
        <source>read to here</source>
        <translation>读取到此</translation>
    </message>
    <message>
        <source>rebuild of the context</source>
        <translation>重建上下文</translation>
    </message>
    <message>
        <source>rebuilt</source>
        <translation>已重建</translation>
    </message>
    <message>
        <source>rebuilt, state kept</source>
        <translation>重建，保留状态</translation>
    </message>
    <message>
        <source>rebuilt, text read again</source>
        <translation>重建，重新读取文本</translation>
    </message>
    <message>
        <source>recompute</source>
        <translation>重新计算</translation>
    </message>
    <message>
        <source>recording</source>
        <translation>记录</translation>
    </message>
    <message>
        <source>recurrent</source>
        <translation>循环</translation>
    </message>
    <message>
        <source>recurrent state</source>
        <translation>循环状态</translation>
    </message>
    <message>
        <source>recycled ids, not cleaned</source>
        <translation>id 循环使用，未清理</translation>
    </message>
    <message>
        <source>references to web pages</source>
        <translation>网页引用</translation>
    </message>
    <message>
        <source>refused</source>
        <translation>已拒绝</translation>
    </message>
    <message>
        <source>refused ({code:.0f})</source>
        <translation>被拒绝（{code:.0f}）</translation>
    </message>
    <message>
        <source>refused at request {n}</source>
        <translation>在第 {n} 个请求被拒绝</translation>
    </message>
    <message>
        <source>refused by kvdesk</source>
        <translation>被 kvdesk 拒绝</translation>
    </message>
    <message>
        <source>removed</source>
        <translation>已移除</translation>
    </message>
    <message>
        <source>removed from {first} </source>
        <translation>从 {first} 起移除 </translation>
    </message>
    <message>
        <source>removed next</source>
        <translation>下一个移除</translation>
    </message>
    <message>
        <source>removed, but positions go on</source>
        <translation>已移除，但位置继续</translation>
    </message>
    <message>
        <source>request</source>
        <translation>请求</translation>
    </message>
    <message>
        <source>request of {program}</source>
        <translation>{program} 的请求</translation>
    </message>
    <message>
        <source>request {n}: {why}</source>
        <translation>请求 {n}：{why}</translation>
    </message>
    <message>
        <source>requests</source>
        <translation>请求</translation>
    </message>
    <message>
        <source>requests of this window</source>
        <translation>这个窗口的请求</translation>
    </message>
    <message>
        <source>requests with different keys share no cells of the cache</source>
        <translation>密钥不同的请求不共享缓存单元</translation>
    </message>
    <message>
        <source>resident memory</source>
        <translation>常驻内存</translation>
    </message>
    <message>
        <source>restored in {time}</source>
        <translation>恢复用时 {time}</translation>
    </message>
    <message>
        <source>results of tools</source>
        <translation>工具结果</translation>
    </message>
    <message>
        <source>return codes: {codes}; calls refused: {refused}</source>
        <translation>返回码：{codes}；被拒绝的调用：{refused}</translation>
    </message>
    <message>
        <source>reused tokens</source>
        <translation>复用的 token</translation>
    </message>
    <message>
        <source>reused {reused_tokens}</source>
        <translation>复用了 {reused_tokens}</translation>
    </message>
    <message>
        <source>reused {reused_tokens} · prefilled {prefilled_tokens} · first token {ttft_ms:.2f} s · {decode_tok_s:.0f} tok/s · {generated_tokens} tokens</source>
        <translation>复用 {reused_tokens} · 预填充 {prefilled_tokens} · 首个 token {ttft_ms:.2f} 秒 · {decode_tok_s:.0f} tok/s · {generated_tokens} 个 token</translation>
    </message>
    <message>
        <source>ring</source>
        <translation>环</translation>
    </message>
    <message>
        <source>running</source>
        <translation>正在运行</translation>
    </message>
    <message>
        <source>runs</source>
        <translation>段</translation>
    </message>
    <message>
        <source>runs a sequence</source>
        <translation>每个序列的段数</translation>
    </message>
    <message>
        <source>s after the first overflow</source>
        <translation>首次溢出之后（秒）</translation>
    </message>
    <message>
        <source>same likeliest</source>
        <translation>最可能的相同</translation>
    </message>
    <message>
        <source>same likeliest token</source>
        <translation>最可能的 token 相同</translation>
    </message>
    <message>
        <source>same seed, same operations (default 1)</source>
        <translation>种子相同，操作就相同（默认 1）</translation>
    </message>
    <message>
        <source>save the report of the last mismatch here</source>
        <translation>将最后一次不一致的报告保存到这里</translation>
    </message>
    <message>
        <source>saved conversations</source>
        <translation>保存的对话</translation>
    </message>
    <message>
        <source>saved states and undo</source>
        <translation>保存的状态与撤销</translation>
    </message>
    <message>
        <source>saved to memory while it is not used. {why}</source>
        <translation>闲置期间存入内存。{why}</translation>
    </message>
    <message>
        <source>say what is in the file, and import nothing</source>
        <translation>只说明文件中有什么，不导入</translation>
    </message>
    <message>
        <source>scatter</source>
        <translation>分散程度</translation>
    </message>
    <message>
        <source>scattered</source>
        <translation>分散</translation>
    </message>
    <message>
        <source>scattered, then compacted</source>
        <translation>分散，然后整理</translation>
    </message>
    <message>
        <source>seconds</source>
        <translation>秒</translation>
    </message>
    <message>
        <source>seconds of that waited for</source>
        <translation>其中等待的秒数</translation>
    </message>
    <message>
        <source>seconds waited</source>
        <translation>等待的秒数</translation>
    </message>
    <message>
        <source>seed</source>
        <translation>种子</translation>
    </message>
    <message>
        <source>seed {seed}</source>
        <translation>种子 {seed}</translation>
    </message>
    <message>
        <source>seq {seq_id}</source>
        <translation>seq {seq_id}</translation>
    </message>
    <message>
        <source>seq_id {n}</source>
        <translation>seq_id {n}</translation>
    </message>
    <message>
        <source>sequence {seq_id}</source>
        <translation>序列 {seq_id}</translation>
    </message>
    <message>
        <source>series</source>
        <translation>曲线</translation>
    </message>
    <message>
        <source>set</source>
        <translation>set</translation>
    </message>
    <message>
        <source>set of the long conversation</source>
        <translation>set 长的对话</translation>
    </message>
    <message>
        <source>set of the short conversation</source>
        <translation>set 短的对话</translation>
    </message>
    <message>
        <source>share</source>
        <translation>比例</translation>
    </message>
    <message>
        <source>share of a copy&apos;s bandwidth</source>
        <translation>占复制带宽的比例</translation>
    </message>
    <message>
        <source>shared</source>
        <translation>共享</translation>
    </message>
    <message>
        <source>sharing factor</source>
        <translation>共享系数</translation>
    </message>
    <message>
        <source>short</source>
        <translation>简短</translation>
    </message>
    <message>
        <source>shortest first</source>
        <translation>最短的在前</translation>
    </message>
    <message>
        <source>show this help and end</source>
        <translation>显示此帮助并结束</translation>
    </message>
    <message>
        <source>shown</source>
        <translation>显示</translation>
    </message>
    <message>
        <source>side by side</source>
        <translation>相邻</translation>
    </message>
    <message>
        <source>signal {number}</source>
        <translation>信号 {number}</translation>
    </message>
    <message>
        <source>slide</source>
        <translation>滑动</translation>
    </message>
    <message>
        <source>slope</source>
        <translation>斜率</translation>
    </message>
    <message>
        <source>slope per request</source>
        <translation>每个请求的斜率</translation>
    </message>
    <message>
        <source>slot search, last batch</source>
        <translation>查找槽位，上一个批次</translation>
    </message>
    <message>
        <source>slots at most</source>
        <translation>最多的槽位</translation>
    </message>
    <message>
        <source>slots in a block</source>
        <translation>每块的槽位</translation>
    </message>
    <message>
        <source>slower</source>
        <translation>变慢</translation>
    </message>
    <message>
        <source>small pieces among them</source>
        <translation>小块夹在其间</translation>
    </message>
    <message>
        <source>something</source>
        <translation>某些内容</translation>
    </message>
    <message>
        <source>something else than a rule’s parts</source>
        <translation>不属于规则组成部分的内容</translation>
    </message>
    <message>
        <source>sound and video</source>
        <translation>声音和视频</translation>
    </message>
    <message>
        <source>special</source>
        <translation>特殊</translation>
    </message>
    <message>
        <source>special token</source>
        <translation>特殊 token</translation>
    </message>
    <message>
        <source>start</source>
        <translation>起点</translation>
    </message>
    <message>
        <source>still counts</source>
        <translation>仍然计入</translation>
    </message>
    <message>
        <source>stop</source>
        <translation>停止</translation>
    </message>
    <message>
        <source>stopped</source>
        <translation>已停止</translation>
    </message>
    <message>
        <source>stream {i}</source>
        <translation>stream {i}</translation>
    </message>
    <message>
        <source>stream {stream}</source>
        <translation>stream {stream}</translation>
    </message>
    <message>
        <source>streams</source>
        <translation>stream</translation>
    </message>
    <message>
        <source>sum over kvdesk</source>
        <translation>总和与 kvdesk 之比</translation>
    </message>
    <message>
        <source>sum, ms</source>
        <translation>总和（毫秒）</translation>
    </message>
    <message>
        <source>surprise</source>
        <translation>意外程度</translation>
    </message>
    <message>
        <source>swap in</source>
        <translation>换入</translation>
    </message>
    <message>
        <source>swap out</source>
        <translation>换出</translation>
    </message>
    <message>
        <source>swapped out</source>
        <translation>已换出</translation>
    </message>
    <message>
        <source>switch flash attention off</source>
        <translation>关闭 flash attention</translation>
    </message>
    <message>
        <source>symbols</source>
        <translation>符号</translation>
    </message>
    <message>
        <source>system messages</source>
        <translation>系统消息</translation>
    </message>
    <message>
        <source>system prompt</source>
        <translation>系统提示词</translation>
    </message>
    <message>
        <source>taken</source>
        <translation>被接受</translation>
    </message>
    <message>
        <source>taken by filling again</source>
        <translation>再次填充时占用</translation>
    </message>
    <message>
        <source>taken by making the context</source>
        <translation>创建上下文时占用</translation>
    </message>
    <message>
        <source>takes a time that has not been measured yet</source>
        <translation>用时尚未测量</translation>
    </message>
    <message>
        <source>takes about {seconds} s at the measured speed</source>
        <translation>按实测速度约需 {seconds} 秒</translation>
    </message>
    <message>
        <source>template</source>
        <translation>模板</translation>
    </message>
    <message>
        <source>tensor {name!r} has a data type that llama.cpp no longer reads ({number})</source>
        <translation>张量 {name!r} 的数据类型 llama.cpp 已不再读取（{number}）</translation>
    </message>
    <message>
        <source>tensor {name!r} has a data type this llama.cpp does not know ({number})</source>
        <translation>张量 {name!r} 的数据类型这个 llama.cpp 不认识（{number}）</translation>
    </message>
    <message>
        <source>tensor {name!r} has an impossible shape</source>
        <translation>张量 {name!r} 的形状不可能</translation>
    </message>
    <message>
        <source>tensor {name!r} has {n_dims:,} dimensions</source>
        <translation>张量 {name!r} 有 {n_dims:,} 个维度</translation>
    </message>
    <message>
        <source>tensor {name!r} is not where the one before it ends</source>
        <translation>张量 {name!r} 没有紧接在前一个之后</translation>
    </message>
    <message>
        <source>terms to accept, token needed</source>
        <translation>需接受条款，需要 token</translation>
    </message>
    <message>
        <source>text</source>
        <translation>文本</translation>
    </message>
    <message>
        <source>the %n oldest messages</source>
        <translation>最早的 %n 条消息</translation>
    </message>
    <message>
        <source>the OpenAI protocol over HTTP, on the same engine and cache</source>
        <translation>通过 HTTP 提供 OpenAI 协议，使用同一个引擎和缓存</translation>
    </message>
    <message>
        <source>the beginning of this answer</source>
        <translation>这个回答的开头</translation>
    </message>
    <message>
        <source>the chats of yesterday are made</source>
        <translation>正在生成昨天的对话</translation>
    </message>
    <message>
        <source>the context was rebuilt</source>
        <translation>上下文已重建</translation>
    </message>
    <message>
        <source>the conversation was closed</source>
        <translation>对话已关闭</translation>
    </message>
    <message>
        <source>the engine reports other numbers</source>
        <translation>引擎报告的数值不同</translation>
    </message>
    <message>
        <source>the first {n:,} tokens stay</source>
        <translation>最前面的 {n:,} 个 token 保留</translation>
    </message>
    <message>
        <source>the first {n} characters</source>
        <translation>前 {n} 个字符</translation>
    </message>
    <message>
        <source>the first {n} of {all} pages</source>
        <translation>前 {n} 页，共 {all} 页</translation>
    </message>
    <message>
        <source>the grammar ends in the middle of a text</source>
        <translation>语法在文本中间结束</translation>
    </message>
    <message>
        <source>the journal is read</source>
        <translation>正在读取操作记录</translation>
    </message>
    <message>
        <source>the last position again</source>
        <translation>再次使用最后的位置</translation>
    </message>
    <message>
        <source>the machine was quiet.</source>
        <translation>机器处于安静状态。</translation>
    </message>
    <message>
        <source>the map and llama.cpp&apos;s own state disagree: {detail}</source>
        <translation>单元图与 llama.cpp 自身的状态不一致：{detail}</translation>
    </message>
    <message>
        <source>the map has a mismatch</source>
        <translation>单元图有不一致</translation>
    </message>
    <message>
        <source>the map is mirrored</source>
        <translation>单元图为镜像</translation>
    </message>
    <message>
        <source>the map is verified</source>
        <translation>单元图已验证</translation>
    </message>
    <message>
        <source>the middle, when the end was removed</source>
        <translation>移除末尾后的中间位置</translation>
    </message>
    <message>
        <source>the most repetitions are fewer than the least</source>
        <translation>最多重复次数小于最少重复次数</translation>
    </message>
    <message>
        <source>the name of a rule is missing</source>
        <translation>缺少规则名称</translation>
    </message>
    <message>
        <source>the oldest message</source>
        <translation>最早的一条消息</translation>
    </message>
    <message>
        <source>the position (pos) of the token in its sequence</source>
        <translation>token 在其序列中的位置 (pos)</translation>
    </message>
    <message>
        <source>the position behind the last</source>
        <translation>最后位置的下一个</translation>
    </message>
    <message>
        <source>the prompt diverges at position {n}</source>
        <translation>提示词在位置 {n} 处分叉</translation>
    </message>
    <message>
        <source>the report cannot be written to {report}</source>
        <translation>无法将报告写入 {report}</translation>
    </message>
    <message>
        <source>the result as one JSON object on standard output</source>
        <translation>将结果作为一个 JSON 对象输出到标准输出</translation>
    </message>
    <message>
        <source>the right way</source>
        <translation>正确的方式</translation>
    </message>
    <message>
        <source>the same order without gaps</source>
        <translation>顺序相同，没有空缺</translation>
    </message>
    <message>
        <source>the same text after another one, and in an empty cache</source>
        <translation>同一文本：在另一文本之后，以及在空缓存中</translation>
    </message>
    <message>
        <source>the same up to rounding</source>
        <translation>除舍入外相同</translation>
    </message>
    <message>
        <source>the same, and it may see what others asked</source>
        <translation>同上，并且可以看到其他程序的请求</translation>
    </message>
    <message>
        <source>the same, from a file</source>
        <translation>同上，从文件读取</translation>
    </message>
    <message>
        <source>the saved state is not what it was said to be</source>
        <translation>保存的状态与说明不符</translation>
    </message>
    <message>
        <source>the short conversation alone</source>
        <translation>只有短的对话</translation>
    </message>
    <message>
        <source>the short form: within three minutes</source>
        <translation>简短形式：三分钟以内</translation>
    </message>
    <message>
        <source>the short one moved</source>
        <translation>移动短的对话</translation>
    </message>
    <message>
        <source>the story</source>
        <translation>故事</translation>
    </message>
    <message>
        <source>the system prompt</source>
        <translation>系统提示词</translation>
    </message>
    <message>
        <source>the turns of one conversation on standard output</source>
        <translation>在标准输出上进行一个对话的各轮</translation>
    </message>
    <message>
        <source>the whole prompt</source>
        <translation>整段提示词</translation>
    </message>
    <message>
        <source>there cannot be {least:,} items</source>
        <translation>不可能有 {least:,} 项</translation>
    </message>
    <message>
        <source>there cannot be {least:,} or more and {most:,} or fewer</source>
        <translation>不可能既有至少 {least:,} 个又有至多 {most:,} 个</translation>
    </message>
    <message>
        <source>there is nothing to repeat</source>
        <translation>没有可以重复的内容</translation>
    </message>
    <message>
        <source>there may be no gap</source>
        <translation>不能有空缺</translation>
    </message>
    <message>
        <source>threads</source>
        <translation>线程</translation>
    </message>
    <message>
        <source>threads (default: physical cores)</source>
        <translation>线程数（默认为物理核心数）</translation>
    </message>
    <message>
        <source>throughput</source>
        <translation>吞吐量</translation>
    </message>
    <message>
        <source>tier</source>
        <translation>层级</translation>
    </message>
    <message>
        <source>time</source>
        <translation>时间</translation>
    </message>
    <message>
        <source>time of flushes</source>
        <translation>K-shift 的用时</translation>
    </message>
    <message>
        <source>time over f16</source>
        <translation>与 f16 的用时之比</translation>
    </message>
    <message>
        <source>time over memcpy</source>
        <translation>与 memcpy 的用时之比</translation>
    </message>
    <message>
        <source>time over {n}</source>
        <translation>与 {n} 的用时之比</translation>
    </message>
    <message>
        <source>time per token</source>
        <translation>每个 token 的用时</translation>
    </message>
    <message>
        <source>time per token, median at n_kv</source>
        <translation>每个 token 的用时，n_kv 处的中位数</translation>
    </message>
    <message>
        <source>time to first token</source>
        <translation>首个 token 用时</translation>
    </message>
    <message>
        <source>time, {policy} over {over}</source>
        <translation>用时，{policy}与{over}之比</translation>
    </message>
    <message>
        <source>times</source>
        <translation>次</translation>
    </message>
    <message>
        <source>times the first</source>
        <translation>与第一个之比</translation>
    </message>
    <message>
        <source>to</source>
        <translation>到</translation>
    </message>
    <message>
        <source>to be computed</source>
        <translation>待计算</translation>
    </message>
    <message>
        <source>to compare the next token</source>
        <translation>用于比较下一个 token</translation>
    </message>
    <message>
        <source>to verify the conversation</source>
        <translation>用于验证对话</translation>
    </message>
    <message>
        <source>together</source>
        <translation>一起</translation>
    </message>
    <message>
        <source>together over in turn</source>
        <translation>一起与依次之比</translation>
    </message>
    <message>
        <source>tok/s</source>
        <translation>tok/s</translation>
    </message>
    <message>
        <source>tok/s at {n:,}</source>
        <translation>深度 {n:,} 处的 tok/s</translation>
    </message>
    <message>
        <source>tok/s of the answers</source>
        <translation>回答的 tok/s</translation>
    </message>
    <message>
        <source>token</source>
        <translation>token</translation>
    </message>
    <message>
        <source>token P50, P95, longest (ms)</source>
        <translation>token P50、P95、最长（毫秒）</translation>
    </message>
    <message>
        <source>token unknown</source>
        <translation>token 未知</translation>
    </message>
    <message>
        <source>token {token}</source>
        <translation>token {token}</translation>
    </message>
    <message>
        <source>token, P50</source>
        <translation>token，P50</translation>
    </message>
    <message>
        <source>token, P95</source>
        <translation>token，P95</translation>
    </message>
    <message>
        <source>token, longest</source>
        <translation>token，最长</translation>
    </message>
    <message>
        <source>tokens</source>
        <translation>token</translation>
    </message>
    <message>
        <source>tokens after which reasoning is closed where a request does not say (default -1: no limit)</source>
        <translation>请求未指定时，推理在多少个 token 后结束（默认 -1：不限）</translation>
    </message>
    <message>
        <source>tokens of earlier requests kept, sent whole at each step</source>
        <translation>保留之前请求的 token，每步全部发送</translation>
    </message>
    <message>
        <source>tokens read again</source>
        <translation>重新读取的 token</translation>
    </message>
    <message>
        <source>tokens written</source>
        <translation>写出的 token</translation>
    </message>
    <message>
        <source>told by nobody</source>
        <translation>没有人说过</translation>
    </message>
    <message>
        <source>told in message</source>
        <translation>所在的消息</translation>
    </message>
    <message>
        <source>trained for {n} tokens</source>
        <translation>训练长度 {n} 个 token</translation>
    </message>
    <message>
        <source>turn</source>
        <translation>轮次</translation>
    </message>
    <message>
        <source>turn {n}</source>
        <translation>第 {n} 轮</translation>
    </message>
    <message>
        <source>twice</source>
        <translation>两次</translation>
    </message>
    <message>
        <source>two tensors are called {name!r}</source>
        <translation>有两个张量名为 {name!r}</translation>
    </message>
    <message>
        <source>types</source>
        <translation>类型</translation>
    </message>
    <message>
        <source>ubatches</source>
        <translation>ubatch</translation>
    </message>
    <message>
        <source>unchanged</source>
        <translation>未变化</translation>
    </message>
    <message>
        <source>undo</source>
        <translation>撤销</translation>
    </message>
    <message>
        <source>unfolded group</source>
        <translation>已展开的组</translation>
    </message>
    <message>
        <source>unified</source>
        <translation>统一</translation>
    </message>
    <message>
        <source>unknown</source>
        <translation>未知</translation>
    </message>
    <message>
        <source>unused for {idle_s:,.0f} s, frees {n_own:,} cells, {back}</source>
        <translation>{idle_s:,.0f} 秒未使用，可释放 {n_own:,} 个单元，{back}</translation>
    </message>
    <message>
        <source>up to n_kv</source>
        <translation>到 n_kv</translation>
    </message>
    <message>
        <source>usage: </source>
        <translation>用法： </translation>
    </message>
    <message>
        <source>vLLM v1 shares full blocks only and never writes into a shared one; copy on write is the rule of the PagedAttention paper, for sequences that are forked.</source>
        <translation>vLLM v1 只共享完整的块，从不写入共享的块；写时复制是 PagedAttention 论文中用于分叉序列的规则。</translation>
    </message>
    <message>
        <source>vLLM&apos;s blocks of 16 (simulated)</source>
        <translation>vLLM 的块，每块 16（模拟）</translation>
    </message>
    <message>
        <source>vLLM. Its blocks are shown where it was started with --kv-events-config.</source>
        <translation>vLLM。以 --kv-events-config 启动时会显示它的块。</translation>
    </message>
    <message>
        <source>versions and processor, settings without their texts, and what can be done to the cache of the open model</source>
        <translation>版本和处理器、不含文本的设置，以及可以对当前模型的缓存进行的操作</translation>
    </message>
    <message>
        <source>versions of kvdesk and what it is made of</source>
        <translation>kvdesk 及其组成部分的版本</translation>
    </message>
    <message>
        <source>waited for (ms)</source>
        <translation>等待（毫秒）</translation>
    </message>
    <message>
        <source>waited over never</source>
        <translation>等待与从不整理之比</translation>
    </message>
    <message>
        <source>waiting · {amount}</source>
        <translation>等待中 · {amount}</translation>
    </message>
    <message>
        <source>was cancelled</source>
        <translation>已取消</translation>
    </message>
    <message>
        <source>was removed from the cache although cells are free: all {n_seq_max} sequences (n_seq_max) are in use. Its text stays; a larger n_seq_max keeps more branches in the cache.</source>
        <translation>已从缓存中移除，尽管还有空闲单元：全部 {n_seq_max} 个序列（n_seq_max）都在使用。其文本保留；更大的 n_seq_max 可以在缓存中保留更多分支。</translation>
    </message>
    <message>
        <source>was “{was}” and is “{now}”</source>
        <translation>原为“{was}”，现为“{now}”</translation>
    </message>
    <message>
        <source>wasted</source>
        <translation>浪费</translation>
    </message>
    <message>
        <source>way</source>
        <translation>方式</translation>
    </message>
    <message>
        <source>weights</source>
        <translation>权重</translation>
    </message>
    <message>
        <source>what</source>
        <translation>项目</translation>
    </message>
    <message>
        <source>what can be done to the cache of a model, and why not</source>
        <translation>可以对一个模型的缓存做什么，以及不能做的原因</translation>
    </message>
    <message>
        <source>what it says</source>
        <translation>引擎的说明</translation>
    </message>
    <message>
        <source>what the model is called in answers</source>
        <translation>回答中显示的模型名称</translation>
    </message>
    <message>
        <source>what was moved is read again: exact answers were chosen</source>
        <translation>移动过的部分重新读取：选择了精确回答</translation>
    </message>
    <message>
        <source>when</source>
        <translation>时刻</translation>
    </message>
    <message>
        <source>whether this installation is whole</source>
        <translation>检查安装是否完整</translation>
    </message>
    <message>
        <source>which conversation holds the cell; shared cells have the colours of two</source>
        <translation>该单元属于哪个对话；共享的单元有两种颜色</translation>
    </message>
    <message>
        <source>which message of its conversation the token belongs to</source>
        <translation>token 属于其对话的哪条消息</translation>
    </message>
    <message>
        <source>whole sequence sent at each step, behind the last</source>
        <translation>每步发送完整序列，接在最后</translation>
    </message>
    <message>
        <source>whole sequence sent at each step, cells removed before</source>
        <translation>每步发送完整序列，之前移除单元</translation>
    </message>
    <message>
        <source>whole sequence sent at each step, from 0, nothing removed</source>
        <translation>每步发送完整序列，从 0 开始，不移除</translation>
    </message>
    <message>
        <source>whole session</source>
        <translation>整个会话</translation>
    </message>
    <message>
        <source>whole state, in order</source>
        <translation>整个状态，按顺序</translation>
    </message>
    <message>
        <source>with the cache</source>
        <translation>用缓存</translation>
    </message>
    <message>
        <source>with {type} for one of them, K gives {k} and V {v}: {more} matters more</source>
        <translation>其中之一用 {type} 时，K 为 {k}，V 为 {v}：{more} 的影响更大</translation>
    </message>
    <message>
        <source>without</source>
        <translation>不用</translation>
    </message>
    <message>
        <source>without flash attention sums depend on where cells lie, so a later text may differ by rounding.</source>
        <translation>没有 flash attention 时，求和取决于单元所在的位置，因此之后的文本可能因舍入而不同。</translation>
    </message>
    <message>
        <source>without over with, {n} tokens</source>
        <translation>不用与使用之比，{n} 个 token</translation>
    </message>
    <message>
        <source>written</source>
        <translation>已写入</translation>
    </message>
    <message>
        <source>written {ago}</source>
        <translation>写入于 {ago}</translation>
    </message>
    <message>
        <source>yardstick</source>
        <translation>基准</translation>
    </message>
    <message>
        <source>yes</source>
        <translation>是</translation>
    </message>
    <message>
        <source>your own text, for experiments that read one</source>
        <translation>你自己的文本，用于读取文本的实验</translation>
    </message>
    <message>
        <source>{about} (default {default})</source>
        <translation>{about}（默认 {default}）</translation>
    </message>
    <message>
        <source>{about}. Default {default}, from {low} to {high}</source>
        <translation>{about}。默认值 {default}，范围 {low} 到 {high}</translation>
    </message>
    <message>
        <source>{about}; may be repeated</source>
        <translation>{about}；可以重复</translation>
    </message>
    <message>
        <source>{address} is no address of KV events.</source>
        <translation>{address} 不是 KV 事件的地址。</translation>
    </message>
    <message>
        <source>{address} is no web address of a model hub.</source>
        <translation>{address} 不是模型 hub 的网址。</translation>
    </message>
    <message>
        <source>{age} operations ago</source>
        <translation>{age} 次操作前</translation>
    </message>
    <message>
        <source>{architecture} models have no KV cache</source>
        <translation>{architecture} 模型没有 KV 缓存</translation>
    </message>
    <message>
        <source>{architecture} uses {other_class}, which kvdesk does not mirror</source>
        <translation>{architecture} 使用 {other_class}，kvdesk 没有它的镜像</translation>
    </message>
    <message>
        <source>{a} over {b}</source>
        <translation>{a}与{b}之比</translation>
    </message>
    <message>
        <source>{a} to {b}</source>
        <translation>{a} 到 {b}</translation>
    </message>
    <message>
        <source>{cached:,} of {n:,} ({share} %)</source>
        <translation>{cached:,} / {n:,}（{share} %）</translation>
    </message>
    <message>
        <source>{client}: {cells:,} cells, {mb} MB saved</source>
        <translation>{client}：{cells:,} 个单元，已保存 {mb} MB</translation>
    </message>
    <message>
        <source>{decode_tok_s} tok/s</source>
        <translation>{decode_tok_s} tok/s</translation>
    </message>
    <message>
        <source>{done} of {total}</source>
        <translation>{done} / {total}</translation>
    </message>
    <message>
        <source>{error} Nothing can be added to this chat.</source>
        <translation>{error}这个对话无法再添加内容。</translation>
    </message>
    <message>
        <source>{file} cannot be deleted: {why}.</source>
        <translation>无法删除 {file}：{why}。</translation>
    </message>
    <message>
        <source>{file} cannot be read ({strerror}).</source>
        <translation>无法读取 {file}（{strerror}）。</translation>
    </message>
    <message>
        <source>{file} cannot be read: {strerror}.</source>
        <translation>无法读取 {file}：{strerror}。</translation>
    </message>
    <message>
        <source>{file} cannot be read: {why}.</source>
        <translation>无法读取 {file}：{why}。</translation>
    </message>
    <message>
        <source>{file} cannot be written</source>
        <translation>无法写入 {file}</translation>
    </message>
    <message>
        <source>{file} cannot be written: {why}.</source>
        <translation>无法写入 {file}：{why}。</translation>
    </message>
    <message>
        <source>{file} does not have the SHA-256 that the hub gives, and was deleted. Download it again.</source>
        <translation>{file} 的 SHA-256 与 hub 提供的不符，已删除。请重新下载。</translation>
    </message>
    <message>
        <source>{file} has no chats.</source>
        <translation>{file} 中没有对话。</translation>
    </message>
    <message>
        <source>{file} is GGUF version {version}; llama.cpp here reads versions 2 and 3.</source>
        <translation>{file} 是 GGUF 版本 {version}；这里的 llama.cpp 可读取版本 2 和 3。</translation>
    </message>
    <message>
        <source>{file} is a GGUF for big-endian machines; this one is little-endian.</source>
        <translation>{file} 是用于大端机器的 GGUF；这台电脑是小端。</translation>
    </message>
    <message>
        <source>{file} is a database of another program; kvdesk leaves it as it is.</source>
        <translation>{file} 是其他程序的数据库；kvdesk 保持其原样。</translation>
    </message>
    <message>
        <source>{file} is a folder, not a model file.</source>
        <translation>{file} 是文件夹，不是模型文件。</translation>
    </message>
    <message>
        <source>{file} is a later part of a split model; open part 1{first}.</source>
        <translation>{file} 是分卷模型的后续部分；请打开第 1 部分{first}。</translation>
    </message>
    <message>
        <source>{file} is an encoder: it cannot continue a text, so it cannot chat.</source>
        <translation>{file} 是编码器：它不能续写文本，因此不能对话。</translation>
    </message>
    <message>
        <source>{file} is cut off: {bytes} are missing. Download it again.</source>
        <translation>{file} 不完整：缺少 {bytes}。请重新下载。</translation>
    </message>
    <message>
        <source>{file} is damaged: it claims an impossible size.</source>
        <translation>{file} 已损坏：它声明的大小不可能。</translation>
    </message>
    <message>
        <source>{file} is damaged: it claims to be one of {n_split:,} files.</source>
        <translation>{file} 已损坏：它声明自己是 {n_split:,} 个文件之一。</translation>
    </message>
    <message>
        <source>{file} is damaged: {error}.</source>
        <translation>{file} 已损坏：{error}。</translation>
    </message>
    <message>
        <source>{file} is empty.</source>
        <translation>{file} 是空文件。</translation>
    </message>
    <message>
        <source>{file} is no result of an experiment.</source>
        <translation>{file} 不是实验的结果。</translation>
    </message>
    <message>
        <source>{file} is not a database; kvdesk leaves it as it is.</source>
        <translation>{file} 不是数据库；kvdesk 保持其原样。</translation>
    </message>
    <message>
        <source>{file} is not a file but a device or pipe.</source>
        <translation>{file} 不是文件，而是设备或管道。</translation>
    </message>
    <message>
        <source>{file} is part of a model in several files, but has lost its name&apos;s ending.</source>
        <translation>{file} 是多文件模型的一部分，但文件名的结尾已丢失。</translation>
    </message>
    <message>
        <source>{file} is too large or too deeply nested to be read.</source>
        <translation>{file} 太大或嵌套太深，无法读取。</translation>
    </message>
    <message>
        <source>{file} keeps no cache ({architecture}): it cannot be decoded.</source>
        <translation>{file} 没有缓存（{architecture}）：无法对它解码。</translation>
    </message>
    <message>
        <source>{file} must end in one of {endings}.</source>
        <translation>{file} 必须以 {endings} 之一结尾。</translation>
    </message>
    <message>
        <source>{first} is a result of {experiment_id}, {second} of {experiment_id2}.</source>
        <translation>{first} 是 {experiment_id} 的结果，{second} 是 {experiment_id2} 的结果。</translation>
    </message>
    <message>
        <source>{first} to {last}</source>
        <translation>{first} 到 {last}</translation>
    </message>
    <message>
        <source>{folder} cannot be written ({strerror}); kvdesk goes on without it.</source>
        <translation>无法写入 {folder}（{strerror}）；kvdesk 在没有它的情况下继续。</translation>
    </message>
    <message>
        <source>{full} was full: {removed}, and {n_read:,} tokens are computed again, so that the answer is exact.</source>
        <translation>{full}已满：{removed}，{n_read:,} 个 token 重新计算，因此回答是精确的。</translation>
    </message>
    <message>
        <source>{full} was full: {removed}, {stays}, and the later tokens moved to lower positions without being computed again. From here on, answers are not exact.</source>
        <translation>{full}已满：{removed}，{stays}，后面的 token 移到更低的位置而没有重新计算。从这里开始，回答不再精确。</translation>
    </message>
    <message>
        <source>{given} is a folder; kvdesk opens a GGUF file.</source>
        <translation>{given} 是文件夹；kvdesk 打开的是 GGUF 文件。</translation>
    </message>
    <message>
        <source>{given} is no command and no file. {advice}</source>
        <translation>{given} 既不是命令也不是文件。{advice}</translation>
    </message>
    <message>
        <source>{heads} heads share the keys and values of {kv}</source>
        <translation>{heads} 个 head 共用 {kv} 个的 Key 和 Value</translation>
    </message>
    <message>
        <source>{host} answered something that is not the protocol of a model hub.</source>
        <translation>{host} 的应答不符合模型 hub 的协议。</translation>
    </message>
    <message>
        <source>{host} answers with error {status}.</source>
        <translation>{host} 返回错误 {status}。</translation>
    </message>
    <message>
        <source>{host} cannot be reached.</source>
        <translation>无法连接 {host}。</translation>
    </message>
    <message>
        <source>{host} does not accept the token, or wants one.</source>
        <translation>{host} 不接受这个 token，或需要一个 token。</translation>
    </message>
    <message>
        <source>{host} does not answer.</source>
        <translation>{host} 没有应答。</translation>
    </message>
    <message>
        <source>{host} has no {what}, or it is private.</source>
        <translation>{host} 没有 {what}，或它不公开。</translation>
    </message>
    <message>
        <source>{id} reads no text: its tokens are drawn at random.</source>
        <translation>{id} 不读取文本：它的 token 是随机生成的。</translation>
    </message>
    <message>
        <source>{id} takes no journal: it makes what it measures.</source>
        <translation>{id} 不使用操作记录：它自行生成测量的内容。</translation>
    </message>
    <message>
        <source>{i} of {n}</source>
        <translation>{i} / {n}</translation>
    </message>
    <message>
        <source>{key} takes {kind} from {low:g} to {high:g} (it is {value:g}).</source>
        <translation>{key} 应为 {low:g} 到 {high:g} 之间的{kind}（现在是 {value:g}）。</translation>
    </message>
    <message>
        <source>{kind} {id} “{text}” at position {position}, {where}</source>
        <translation>{kind} {id}“{text}”，位置 {position}，{where}</translation>
    </message>
    <message>
        <source>{kind}, {size} cells, round {n}</source>
        <translation>{kind}，{size} 个单元，第 {n} 轮</translation>
    </message>
    <message>
        <source>{kind}: the text is placed among {n} times {size} cells</source>
        <translation>{kind}：将文本放入 {n} 倍 {size} 个单元之间</translation>
    </message>
    <message>
        <source>{known} of {n} codes told in the text are known at its end where nothing is removed.</source>
        <translation>文本中给出的 {n} 个代码中，不移除任何内容时，到末尾仍知道 {known} 个。</translation>
    </message>
    <message>
        <source>{low:.3g} to {high:.3g}</source>
        <translation>{low:.3g} 到 {high:.3g}</translation>
    </message>
    <message>
        <source>{low} to {high}</source>
        <translation>{low} 到 {high}</translation>
    </message>
    <message>
        <source>{low} to {high}{unit}</source>
        <translation>{low} 到 {high}{unit}</translation>
    </message>
    <message>
        <source>{mb} is more than memory may hold: to disk{rest}</source>
        <translation>{mb} 超过内存的上限：写入磁盘{rest}</translation>
    </message>
    <message>
        <source>{mb} is more than the limits allow: it will be prefilled again</source>
        <translation>{mb} 超过限制：将重新预填充</translation>
    </message>
    <message>
        <source>{mb} to memory{rest}</source>
        <translation>{mb} 存入内存{rest}</translation>
    </message>
    <message>
        <source>{missing} MB are still to come, and {free} MB are free on the disk: make room, then resume.</source>
        <translation>还需下载 {missing} MB，而磁盘空闲 {free} MB：请腾出空间后继续。</translation>
    </message>
    <message>
        <source>{missing} bytes missing</source>
        <translation>缺少 {missing} 字节</translation>
    </message>
    <message>
        <source>{model} on {server}</source>
        <translation>{server} 上的 {model}</translation>
    </message>
    <message>
        <source>{most} tokens take {longest} times as long without the cache, {least} tokens {shortest} times. Time grows as the length to the power {without} without and {cached} with it; 2 and 1 are what counting tokens gives.</source>
        <translation>不用缓存时，{most} 个 token 的用时是使用时的 {longest} 倍，{least} 个 token 为 {shortest} 倍。用时随长度的幂增长：不用缓存时指数为 {without}，使用时为 {cached}；按 token 计数应为 2 和 1。</translation>
    </message>
    <message>
        <source>{n:,} bytes</source>
        <translation>{n:,} 字节</translation>
    </message>
    <message>
        <source>{n:,} cells, {type}</source>
        <translation>{n:,} 个单元，{type}</translation>
    </message>
    <message>
        <source>{n:,} cells, {type}, small window cache</source>
        <translation>{n:,} 个单元，{type}，小窗口缓存</translation>
    </message>
    <message>
        <source>{n:,} deletions</source>
        <translation>{n:,} 项删除</translation>
    </message>
    <message>
        <source>{n:,} messages</source>
        <translation>{n:,} 条消息</translation>
    </message>
    <message>
        <source>{n:,} old blocks are not shown any more.</source>
        <translation>{n:,} 个旧的块不再显示。</translation>
    </message>
    <message>
        <source>{n:,} operations</source>
        <translation>{n:,} 次操作</translation>
    </message>
    <message>
        <source>{n:,} operations were saved to {name}.</source>
        <translation>已将 {n:,} 次操作保存到 {name}。</translation>
    </message>
    <message>
        <source>{n:,} things done</source>
        <translation>已做 {n:,} 件事</translation>
    </message>
    <message>
        <source>{n:,} to compute</source>
        <translation>{n:,} 个待计算</translation>
    </message>
    <message>
        <source>{n:,} tokens at the beginning are the same</source>
        <translation>开头的 {n:,} 个 token 相同</translation>
    </message>
    <message>
        <source>{n:,} tokens from cache</source>
        <translation>{n:,} 个 token 来自缓存</translation>
    </message>
    <message>
        <source>{n:,} values</source>
        <translation>{n:,} 个值</translation>
    </message>
    <message>
        <source>{n:,} were missed: what they changed is not known.</source>
        <translation>错过了 {n:,} 条：不知道它们改变了什么。</translation>
    </message>
    <message>
        <source>{n:.0f} cells where {own:.0f} are its own</source>
        <translation>{n:.0f} 个单元，其中 {own:.0f} 个是它自己的</translation>
    </message>
    <message>
        <source>{n:.0f} min</source>
        <translation>{n:.0f} 分钟</translation>
    </message>
    <message>
        <source>{n:.0f} s</source>
        <translation>{n:.0f} 秒</translation>
    </message>
    <message>
        <source>{n:.1f} h</source>
        <translation>{n:.1f} 小时</translation>
    </message>
    <message>
        <source>{n:.2g} times the change of rounding</source>
        <translation>变化为舍入误差的 {n:.2g} 倍</translation>
    </message>
    <message>
        <source>{n_cells} of {n} more</source>
        <translation>另外 {n} 个对话占 {n_cells} 个</translation>
    </message>
    <message>
        <source>{n_kv:,} -&gt; {n_kv_after:,} cells saves {saved:.2f} ms a token{estimated}, {gain:,.0f} ms over the next {n_expected:,} tokens, and costs {price:,.0f} ms</source>
        <translation>单元 {n_kv:,} -&gt; {n_kv_after:,}，每个 token 节省 {saved:.2f} 毫秒{estimated}，接下来 {n_expected:,} 个 token 共节省 {gain:,.0f} 毫秒，代价 {price:,.0f} 毫秒</translation>
    </message>
    <message>
        <source>{n_steps} of {n_planned} operations proved on a twin of this context in {ms:.0f} ms</source>
        <translation>{n_planned} 次操作中的 {n_steps} 次已在这个上下文的副本上证明，用时 {ms:.0f} 毫秒</translation>
    </message>
    <message>
        <source>{n_used:,} used cells; nothing disagrees, but not all can be proven: {detail}</source>
        <translation>{n_used:,} 个已用单元；没有不一致，但不能全部证明：{detail}</translation>
    </message>
    <message>
        <source>{names} are missing.</source>
        <translation>缺少 {names}。</translation>
    </message>
    <message>
        <source>{names} is missing.</source>
        <translation>缺少 {names}。</translation>
    </message>
    <message>
        <source>{name}
{sequence}, {cells} cells, {shared} of them shared
positions [{first}, {end}), {missing} missing between{where}
next valid position {end}</source>
        <translation>{name}
{sequence}，{cells} 个单元，其中 {shared} 个共享
位置 [{first}, {end})，其间缺少 {missing} 个{where}
下一个有效位置 {end}</translation>
    </message>
    <message>
        <source>{name}  {reason} (+{n} to compare)</source>
        <translation>{name}  {reason}（+{n} 次用于比较）</translation>
    </message>
    <message>
        <source>{name} ({keys} in the map)</source>
        <translation>{name}（在图中按 {keys}）</translation>
    </message>
    <message>
        <source>{name} - kvdesk replay</source>
        <translation>{name} - kvdesk 回放</translation>
    </message>
    <message>
        <source>{name} computes no numbers (NaN): its weights are damaged.</source>
        <translation>{name} 算不出数值（NaN）：其权重已损坏。</translation>
    </message>
    <message>
        <source>{name} could not be read.</source>
        <translation>无法读取 {name}。</translation>
    </message>
    <message>
        <source>{name} could not be read: the reader stopped. It may be damaged.</source>
        <translation>无法读取 {name}：读取进程已停止。文件可能已损坏。</translation>
    </message>
    <message>
        <source>{name} could not be read: {reason}.</source>
        <translation>无法读取 {name}：{reason}。</translation>
    </message>
    <message>
        <source>{name} could not be read: {strerror}.</source>
        <translation>无法读取 {name}：{strerror}。</translation>
    </message>
    <message>
        <source>{name} could not be written: {why}</source>
        <translation>无法写入 {name}：{why}</translation>
    </message>
    <message>
        <source>{name} did not finish within {limit_s:g} seconds.</source>
        <translation>{name} 没有在 {limit_s:g} 秒内完成。</translation>
    </message>
    <message>
        <source>{name} does not accept an answer without a question: an empty question stands before it.</source>
        <translation>{name}不接受没有问题的回答：会在其前面放一个空的问题。</translation>
    </message>
    <message>
        <source>{name} does not show its cells any more. {why}</source>
        <translation>{name} 不再显示其单元。{why}</translation>
    </message>
    <message>
        <source>{name} failed in a trial (exit code {code}).</source>
        <translation>{name} 在试运行中失败（退出代码 {code}）。</translation>
    </message>
    <message>
        <source>{name} fails on this conversation in line {line}{reason}.</source>
        <translation>{name}在第 {line} 行处理这个对话时失败{reason}。</translation>
    </message>
    <message>
        <source>{name} fails on this conversation{reason}.</source>
        <translation>{name}处理这个对话时失败{reason}。</translation>
    </message>
    <message>
        <source>{name} has no text: its pages are probably scanned pictures. Only text can be attached.</source>
        <translation>{name} 中没有文本：它的页面可能是扫描的图片。只能附加文本。</translation>
    </message>
    <message>
        <source>{name} is a file; a server opens models by their names.</source>
        <translation>{name} 是文件；服务器按名称打开模型。</translation>
    </message>
    <message>
        <source>{name} is a picture. Text, code, PDF, DOCX and RTF files can be attached.</source>
        <translation>{name} 是图片。可以附加文本、代码、PDF、DOCX 和 RTF 文件。</translation>
    </message>
    <message>
        <source>{name} is an archive, or a document of another kind. Attach text, PDF, DOCX or RTF files.</source>
        <translation>{name} 是压缩包，或其他类型的文档。请附加文本、PDF、DOCX 或 RTF 文件。</translation>
    </message>
    <message>
        <source>{name} is attached</source>
        <translation>已附加 {name}</translation>
    </message>
    <message>
        <source>{name} is broken in line {lineno}: {what}.</source>
        <translation>{name}的第 {lineno} 行有错误：{what}。</translation>
    </message>
    <message>
        <source>{name} is cut off: {bytes} or more are missing. Download it again.</source>
        <translation>{name} 不完整：至少缺少 {bytes}。请重新下载。</translation>
    </message>
    <message>
        <source>{name} is damaged and cannot be read.</source>
        <translation>{name} 已损坏，无法读取。</translation>
    </message>
    <message>
        <source>{name} is empty.</source>
        <translation>{name} 是空文件。</translation>
    </message>
    <message>
        <source>{name} is far too long to be one.</source>
        <translation>{name}过长，不可能是模板。</translation>
    </message>
    <message>
        <source>{name} is in an old Office format. Save it as DOCX or PDF and attach that.</source>
        <translation>{name} 是旧的 Office 格式。请另存为 DOCX 或 PDF 再附加。</translation>
    </message>
    <message>
        <source>{name} is no longer where it was; the embedded model was opened.</source>
        <translation>{name} 已不在原处；已打开内置模型。</translation>
    </message>
    <message>
        <source>{name} is no name for a file here.</source>
        <translation>{name} 不能用作这里的文件名。</translation>
    </message>
    <message>
        <source>{name} is no text file. Text, code, PDF, DOCX and RTF files can be attached.</source>
        <translation>{name} 不是文本文件。可以附加文本、代码、PDF、DOCX 和 RTF 文件。</translation>
    </message>
    <message>
        <source>{name} is not a database; kvdesk leaves it as it is.</source>
        <translation>{name} 不是数据库；kvdesk 保持其原样。</translation>
    </message>
    <message>
        <source>{name} is not a file.</source>
        <translation>{name} 不是文件。</translation>
    </message>
    <message>
        <source>{name} is protected with a password, so it cannot be read.</source>
        <translation>{name} 受密码保护，无法读取。</translation>
    </message>
    <message>
        <source>{name} is too large for a journal: {size:,} bytes.</source>
        <translation>{name} 作为操作记录太大：{size:,} 字节。</translation>
    </message>
    <message>
        <source>{name} is too large to be attached.</source>
        <translation>{name} 太大，无法附加。</translation>
    </message>
    <message>
        <source>{name} leaves the last message out of the prompt. Choose another template for this chat.</source>
        <translation>{name}没有把最后一条消息放入提示词。请为这个对话选择其他模板。</translation>
    </message>
    <message>
        <source>{name} makes llama.cpp crash ({how}); it did so in a trial, so nothing is lost.</source>
        <translation>{name} 使 llama.cpp 崩溃（{how}）；这发生在试运行中，因此没有任何损失。</translation>
    </message>
    <message>
        <source>{name} must end in .png, .svg or .csv</source>
        <translation>{name} 必须以 .png、.svg 或 .csv 结尾</translation>
    </message>
    <message>
        <source>{name} needs more memory than a file of its kind should, so it was left out.</source>
        <translation>{name} 所需的内存超过这类文件应有的范围，因此没有包含。</translation>
    </message>
    <message>
        <source>{name} needs more memory than a model of its size should.</source>
        <translation>{name} 需要的内存超过这种大小的模型应有的范围。</translation>
    </message>
    <message>
        <source>{name} of type {kind} needs heads of a multiple of {block} numbers; this model&apos;s differ.</source>
        <translation>类型为 {kind} 的 {name} 要求 head 大小是 {block} 的倍数；这个模型不是。</translation>
    </message>
    <message>
        <source>{name} over allocated, where it is worst</source>
        <translation>{name}与实际分配之比，取最差的一项</translation>
    </message>
    <message>
        <source>{name} random</source>
        <translation>{name} 随机</translation>
    </message>
    <message>
        <source>{name} refuses this conversation: {reason}</source>
        <translation>{name}不接受这个对话：{reason}</translation>
    </message>
    <message>
        <source>{name} took longer than {seconds} seconds to read, so it was left out.</source>
        <translation>读取 {name} 用时超过 {seconds} 秒，因此没有包含。</translation>
    </message>
    <message>
        <source>{name} was stopped: it does what no template needs to do.</source>
        <translation>{name}已被停止：它做了模板不需要做的事。</translation>
    </message>
    <message>
        <source>{name}, first part</source>
        <translation>{name}，第一部分</translation>
    </message>
    <message>
        <source>{name}: {n:.1f} times</source>
        <translation>{name}：{n:.1f} 倍</translation>
    </message>
    <message>
        <source>{name}: {ratio} times</source>
        <translation>{name}：{ratio} 倍</translation>
    </message>
    <message>
        <source>{name}: {sentence}</source>
        <translation>{name}：{sentence}</translation>
    </message>
    <message>
        <source>{near:g} or more</source>
        <translation>{near:g} 或以上</translation>
    </message>
    <message>
        <source>{n} %</source>
        <translation>{n} %</translation>
    </message>
    <message>
        <source>{n} M parameters</source>
        <translation>{n} M 参数</translation>
    </message>
    <message>
        <source>{n} MB, estimated</source>
        <translation>{n} MB，估计值</translation>
    </message>
    <message>
        <source>{n} answers together write {gain:.2g} times the tokens a second; a prompt in {pieces} pieces makes their longest gap {gap:.2g} times as long.</source>
        <translation>{n} 个回答一起生成时，每秒的 token 数为依次进行的 {gain:.2g} 倍；将提示词分为 {pieces} 块会使其最长间隔变为 {gap:.2g} 倍。</translation>
    </message>
    <message>
        <source>{n} are carried over: nothing is computed.</source>
        <translation>保留 {n}：无需计算。</translation>
    </message>
    <message>
        <source>{n} are prefilled again{time}; it can be cancelled.</source>
        <translation>重新预填充 {n}{time}；可以取消。</translation>
    </message>
    <message>
        <source>{n} are removed from the cache; each chat is prefilled again at its next message.</source>
        <translation>从缓存中移除 {n}；每个对话会在其下一条消息时重新预填充。</translation>
    </message>
    <message>
        <source>{n} cells</source>
        <translation>{n} 个单元</translation>
    </message>
    <message>
        <source>{n} cells changed</source>
        <translation>{n} 个单元已变化</translation>
    </message>
    <message>
        <source>{n} cells selected</source>
        <translation>已选择 {n} 个单元</translation>
    </message>
    <message>
        <source>{n} chats in one batch write {gain} times as many tokens a second as in turn, and in streams of their own {streams} times as many as in one cache.</source>
        <translation>一个批次中的 {n} 个对话每秒写出的 token 是依次进行时的 {gain} 倍，各用自己的 stream 时是共用一个缓存时的 {streams} 倍。</translation>
    </message>
    <message>
        <source>{n} chats in one batch write {gain} times as many tokens a second as in turn.</source>
        <translation>一个批次中的 {n} 个对话每秒写出的 token 是依次进行时的 {gain} 倍。</translation>
    </message>
    <message>
        <source>{n} chats were imported.</source>
        <translation>已导入 {n} 个对话。</translation>
    </message>
    <message>
        <source>{n} chats were saved to {file}.</source>
        <translation>已将 {n} 个对话保存到 {file}。</translation>
    </message>
    <message>
        <source>{n} downloads a month</source>
        <translation>每月下载 {n} 次</translation>
    </message>
    <message>
        <source>{n} files at once are too many: at most {most} can be attached.</source>
        <translation>一次 {n} 个文件太多：最多可以附加 {most} 个。</translation>
    </message>
    <message>
        <source>{n} free</source>
        <translation>{n} 空闲</translation>
    </message>
    <message>
        <source>{n} freed</source>
        <translation>释放 {n} 个</translation>
    </message>
    <message>
        <source>{n} in streams over in one cache</source>
        <translation>{n} 个用 stream 与共用一个缓存之比</translation>
    </message>
    <message>
        <source>{n} moved</source>
        <translation>移动 {n} 个</translation>
    </message>
    <message>
        <source>{n} no longer shared</source>
        <translation>{n} 个不再共享</translation>
    </message>
    <message>
        <source>{n} of them here already</source>
        <translation>其中 {n} 个这里已有</translation>
    </message>
    <message>
        <source>{n} of {all}</source>
        <translation>{n} / {all}</translation>
    </message>
    <message>
        <source>{n} of {all} tokens have to be read</source>
        <translation>{all} 个 token 中有 {n} 个需要读取</translation>
    </message>
    <message>
        <source>{n} of {all} tokens have to be read with your next message</source>
        <translation>{all} 个 token 中有 {n} 个需要随你的下一条消息读取</translation>
    </message>
    <message>
        <source>{n} of {most} threads</source>
        <translation>{n} / {most} 个线程</translation>
    </message>
    <message>
        <source>{n} of {n_cores} cores, nothing else was measured yet.</source>
        <translation>{n} / {n_cores} 个核心，尚未测量其他情况。</translation>
    </message>
    <message>
        <source>{n} of {prompt} tokens were in the server&apos;s cache.</source>
        <translation>{prompt} 个 token 中有 {n} 个在服务器的缓存中。</translation>
    </message>
    <message>
        <source>{n} of “{title}”</source>
        <translation>“{title}”占 {n} 个</translation>
    </message>
    <message>
        <source>{n} older dropped</source>
        <translation>丢弃 {n} 个较旧的</translation>
    </message>
    <message>
        <source>{n} older to disk</source>
        <translation>{n} 个较旧的写入磁盘</translation>
    </message>
    <message>
        <source>{n} operations</source>
        <translation>{n} 次操作</translation>
    </message>
    <message>
        <source>{n} operations ago</source>
        <translation>{n} 次操作前</translation>
    </message>
    <message>
        <source>{n} pages</source>
        <translation>{n} 页</translation>
    </message>
    <message>
        <source>{n} pages of memory were read from the disk</source>
        <translation>从磁盘读取了 {n} 个内存页</translation>
    </message>
    <message>
        <source>{n} placed</source>
        <translation>放置 {n} 个</translation>
    </message>
    <message>
        <source>{n} prompts go on from it</source>
        <translation>{n} 个提示词从其后继续</translation>
    </message>
    <message>
        <source>{n} prompts with {system:.0f} tokens in common: {whole:,.0f} tokens are read where each prompt is read whole, and {shared:,.0f} with the common prefix shared (SGLang&apos;s tree: {tree:,.0f}, vLLM&apos;s blocks of 16: {blocks:,.0f}, both simulated), into {cells_whole:,.0f} and {cells_shared:,.0f} cells. Read whole, the first token of a chat takes {chat} times as long{branch}.</source>
        <translation>{n} 段提示词共有 {system:.0f} 个相同的 token：每段整段读取时读取 {whole:,.0f} 个 token，共享相同前缀时读取 {shared:,.0f} 个（模拟：SGLang 的前缀树 {tree:,.0f} 个，vLLM 每块 16 为 {blocks:,.0f} 个），分别占用 {cells_whole:,.0f} 和 {cells_shared:,.0f} 个单元。整段读取时，对话的首个 token 用时为 {chat} 倍{branch}。</translation>
    </message>
    <message>
        <source>{n} px</source>
        <translation>{n} 像素</translation>
    </message>
    <message>
        <source>{n} rounds were added, and the intervals are as wide as that made them.</source>
        <translation>增加了 {n} 轮，区间也因此变宽。</translation>
    </message>
    <message>
        <source>{n} samples</source>
        <translation>{n} 个样本</translation>
    </message>
    <message>
        <source>{n} sequence</source>
        <translation>{n} 个序列</translation>
    </message>
    <message>
        <source>{n} shared now</source>
        <translation>{n} 个现在共享</translation>
    </message>
    <message>
        <source>{n} shifted to other positions</source>
        <translation>{n} 个移到其他位置</translation>
    </message>
    <message>
        <source>{n} slots with {n_ctx:,} tokens each, {busy} of them at work.</source>
        <translation>{n} 个槽位，每个 {n_ctx:,} 个 token，其中 {busy} 个正在工作。</translation>
    </message>
    <message>
        <source>{n} slots with {n_ctx:,} tokens each.</source>
        <translation>{n} 个槽位，每个 {n_ctx:,} 个 token。</translation>
    </message>
    <message>
        <source>{n} stayed</source>
        <translation>{n} 个未动</translation>
    </message>
    <message>
        <source>{n} streams</source>
        <translation>{n} 个 stream</translation>
    </message>
    <message>
        <source>{n} threads</source>
        <translation>{n} 个线程</translation>
    </message>
    <message>
        <source>{n} together over in turn</source>
        <translation>{n} 个一起与依次之比</translation>
    </message>
    <message>
        <source>{n} tok/s</source>
        <translation>{n} tok/s</translation>
    </message>
    <message>
        <source>{n} tokens</source>
        <translation>{n} 个 token</translation>
    </message>
    <message>
        <source>{n} tokens are prefilled again with the next answer.</source>
        <translation>下一个回答会重新预填充 {n} 个 token。</translation>
    </message>
    <message>
        <source>{n} tokens are prefilled again with the next answer: {time}.</source>
        <translation>下一个回答会重新预填充 {n} 个 token：{time}。</translation>
    </message>
    <message>
        <source>{n} tokens came with their state, without reading.</source>
        <translation>{n} 个 token 随其状态一起恢复，无需读取。</translation>
    </message>
    <message>
        <source>{n} tokens in the middle are not shown</source>
        <translation>中间的 {n} 个 token 没有显示</translation>
    </message>
    <message>
        <source>{n} tokens of context with K and V in {kind} take {needed}; {free} are free.</source>
        <translation>上下文 {n} 个 token、K 和 V 为 {kind} 时需要 {needed}；空闲 {free}。</translation>
    </message>
    <message>
        <source>{n} tokens read at {tok_s} tok/s</source>
        <translation>读取 {n} 个 token（{tok_s} tok/s）</translation>
    </message>
    <message>
        <source>{n} tokens read at {tok_s} tok/s, as usual on this computer</source>
        <translation>读取 {n} 个 token（{tok_s} tok/s，与这台电脑平时相同）</translation>
    </message>
    <message>
        <source>{n} tokens read at {tok_s} tok/s, usually {usual} on this computer</source>
        <translation>读取 {n} 个 token（{tok_s} tok/s，这台电脑平时为 {usual}）</translation>
    </message>
    <message>
        <source>{n} tokens were read again in {took} ({tok_s} tok/s).</source>
        <translation>重新读取了 {n} 个 token，用时 {took}（{tok_s} tok/s）。</translation>
    </message>
    <message>
        <source>{n} tokens: only {left} are left for the answer</source>
        <translation>{n} 个 token：只剩 {left} 个留给回答</translation>
    </message>
    <message>
        <source>{n} tokens: the %n oldest messages ({evicted} tokens) are removed from the context for it</source>
        <translation>{n} 个 token：为此将从上下文中移除最早的 %n 条消息（{evicted} 个 token）</translation>
    </message>
    <message>
        <source>{n} tokens: the oldest message ({evicted} tokens) is removed from the context for it</source>
        <translation>{n} 个 token：为此将从上下文中移除最早的一条消息（{evicted} 个 token）</translation>
    </message>
    <message>
        <source>{n} tokens: the oldest tokens ({evicted} tokens) are removed from the context for it</source>
        <translation>{n} 个 token：为此将从上下文中移除最早的 token（{evicted} 个）</translation>
    </message>
    <message>
        <source>{n} tokens: {cached} in the cache, {new} to be computed.</source>
        <translation>{n} 个 token：{cached} 个在缓存中，{new} 个待计算。</translation>
    </message>
    <message>
        <source>{n} values of sampling</source>
        <translation>{n} 个采样值</translation>
    </message>
    <message>
        <source>{ops:,} of {n_ops:,} operations, {mismatches} mismatches, {seconds:.0f} s</source>
        <translation>{ops:,} / {n_ops:,} 次操作，{mismatches} 处不一致，{seconds:.0f} 秒</translation>
    </message>
    <message>
        <source>{ops} operations, {decodes} decodes, {maps} maps and {blobs} states compared in {seconds} s</source>
        <translation>{ops} 次操作，{decodes} 次 decode，比较了 {maps} 张单元图和 {blobs} 个状态，用时 {seconds} 秒</translation>
    </message>
    <message>
        <source>{option}: {problem} (it is {value}).</source>
        <translation>{option}：{problem}（现在是 {value}）。</translation>
    </message>
    <message>
        <source>{parts}; {more} matters more.</source>
        <translation>{parts}；{more} 的影响更大。</translation>
    </message>
    <message>
        <source>{part} ({n:,})</source>
        <translation>{part}（{n:,}）</translation>
    </message>
    <message>
        <source>{path} cannot be read: {why}.</source>
        <translation>无法读取 {path}：{why}。</translation>
    </message>
    <message>
        <source>{place} of the JSON schema cannot be used: {problem}.</source>
        <translation>JSON schema 的 {place} 无法使用：{problem}。</translation>
    </message>
    <message>
        <source>{policy}, round {n}</source>
        <translation>{policy}，第 {n} 轮</translation>
    </message>
    <message>
        <source>{policy}: what is lost</source>
        <translation>{policy}：丢失的内容</translation>
    </message>
    <message>
        <source>{prog}: {said}. `{prog} --help` lists what there is.
</source>
        <translation>{prog}：{said}。`{prog} --help` 列出可用的选项。
</translation>
    </message>
    <message>
        <source>{p} of 100 gaps are at most so long, by nearest rank</source>
        <translation>100 个间隔中有 {p} 个不超过这个值，按最近秩计算</translation>
    </message>
    <message>
        <source>{question}
It takes {total:,.0f} MB of memory at most.</source>
        <translation>{question}
最多占用 {total:,.0f} MB 内存。</translation>
    </message>
    <message>
        <source>{ratio} (at request {n}, where it was stopped)</source>
        <translation>{ratio}（到被停止的第 {n} 个请求为止）</translation>
    </message>
    <message>
        <source>{ref} leads nowhere</source>
        <translation>{ref} 没有目标</translation>
    </message>
    <message>
        <source>{ref} leads out of the schema</source>
        <translation>{ref} 超出 schema</translation>
    </message>
    <message>
        <source>{repo} has no GGUF files.</source>
        <translation>{repo} 中没有 GGUF 文件。</translation>
    </message>
    <message>
        <source>{repo} has no {file} any more.</source>
        <translation>{repo} 中已没有 {file}。</translation>
    </message>
    <message>
        <source>{repo} is no name of a repository: it is owner/name.</source>
        <translation>{repo} 不是仓库名称：应为 所有者/名称。</translation>
    </message>
    <message>
        <source>{reused:,} of {n:,} tokens were in the cache, {prefilled:,} prefilled.</source>
        <translation>{n:,} 个 token 中有 {reused:,} 个在缓存中，预填充了 {prefilled:,} 个。</translation>
    </message>
    <message>
        <source>{said}.</source>
        <translation>{said}。</translation>
    </message>
    <message>
        <source>{said}: {causes}.</source>
        <translation>{said}；原因：{causes}。</translation>
    </message>
    <message>
        <source>{said}; meanwhile {causes}.</source>
        <translation>{said}；其间{causes}。</translation>
    </message>
    <message>
        <source>{seconds} for the chat template and the tokens</source>
        <translation>应用对话模板和分词 {seconds}</translation>
    </message>
    <message>
        <source>{seconds} in the queue behind another answer</source>
        <translation>排在另一个回答之后等待 {seconds}</translation>
    </message>
    <message>
        <source>{seconds} min</source>
        <translation>{seconds} 分钟</translation>
    </message>
    <message>
        <source>{seconds} s</source>
        <translation>{seconds} 秒</translation>
    </message>
    <message>
        <source>{seconds} to bring back its saved state</source>
        <translation>恢复保存的状态 {seconds}</translation>
    </message>
    <message>
        <source>{seconds} to read its saved state from the disk</source>
        <translation>从磁盘读取保存的状态 {seconds}</translation>
    </message>
    <message>
        <source>{seconds} until other work had ended</source>
        <translation>等待其他工作结束 {seconds}</translation>
    </message>
    <message>
        <source>{seconds} while the model was loaded</source>
        <translation>加载模型 {seconds}</translation>
    </message>
    <message>
        <source>{seen}: {threads}.</source>
        <translation>{seen}：{threads}。</translation>
    </message>
    <message>
        <source>{sentence} (X = {x}, Y = {y}: Y must be X + 1)</source>
        <translation>{sentence}（X = {x}，Y = {y}：Y 必须为 X + 1）</translation>
    </message>
    <message>
        <source>{server} says: {line}</source>
        <translation>{server} 说：{line}</translation>
    </message>
    <message>
        <source>{server} sent {what}, which this kvdesk does not understand; it is passed over.</source>
        <translation>{server} 发送了 {what}，这个 kvdesk 不认识它；已忽略。</translation>
    </message>
    <message>
        <source>{setting}: {before} → {after}</source>
        <translation>{setting}：{before} → {after}</translation>
    </message>
    <message>
        <source>{size:,} cells, {name}</source>
        <translation>{size:,} 个单元，{name}</translation>
    </message>
    <message>
        <source>{size} MB of K and V moved{speed}.</source>
        <translation>移动了 {size} MB 的 K 和 V{speed}。</translation>
    </message>
    <message>
        <source>{size} MB to move   decode speed {predicted}</source>
        <translation>需移动 {size} MB   解码速度 {predicted}</translation>
    </message>
    <message>
        <source>{speed} expected here</source>
        <translation>预计速度 {speed}</translation>
    </message>
    <message>
        <source>{tail:,} tokens of another branch stay while there is room</source>
        <translation>在有空间时保留另一分支的 {tail:,} 个 token</translation>
    </message>
    <message>
        <source>{text} has more than {n} digits after the point.</source>
        <translation>{text} 的小数位超过 {n} 位。</translation>
    </message>
    <message>
        <source>{text} is not between {low} and {high}.</source>
        <translation>{text} 不在 {low} 到 {high} 之间。</translation>
    </message>
    <message>
        <source>{text}, a favourite</source>
        <translation>{text}，已收藏</translation>
    </message>
    <message>
        <source>{time} left</source>
        <translation>剩余 {time}</translation>
    </message>
    <message>
        <source>{title} over time</source>
        <translation>{title}随时间的变化</translation>
    </message>
    <message>
        <source>{title}, forked</source>
        <translation>{title}，分叉</translation>
    </message>
    <message>
        <source>{title}, sequence {seq_id}</source>
        <translation>{title}，序列 {seq_id}</translation>
    </message>
    <message>
        <source>{title}: sequence {seq_id}{part}</source>
        <translation>{title}：序列 {seq_id}{part}</translation>
    </message>
    <message>
        <source>{title}: {y_label} over {x_label}</source>
        <translation>{title}：{y_label} 与 {x_label} 的关系</translation>
    </message>
    <message>
        <source>{tokens}: {time}</source>
        <translation>{tokens}：{time}</translation>
    </message>
    <message>
        <source>{total} of {available} MB free</source>
        <translation>{total} MB，空闲 {available} MB</translation>
    </message>
    <message>
        <source>{types} is not possible with this model: {why}</source>
        <translation>这个模型不支持 {types}：{why}</translation>
    </message>
    <message>
        <source>{types} reads chunk {i} of {n}</source>
        <translation>{types} 正在读取分块 {i} / {n}</translation>
    </message>
    <message>
        <source>{types} reads to depth {depth:,}</source>
        <translation>{types} 正在读取到深度 {depth:,}</translation>
    </message>
    <message>
        <source>{types}, depth {depth}</source>
        <translation>{types}，深度 {depth}</translation>
    </message>
    <message>
        <source>{types}, {n} at once</source>
        <translation>{types}，一次 {n} 个</translation>
    </message>
    <message>
        <source>{type} for K and V: the next token {changes} (KL divergence {kl}), at {memory:.2f} of the memory and {time} times the time of a token at depth {depth:,}</source>
        <translation>K 和 V 为 {type}：下一个 token {changes}（KL 散度 {kl}），内存为 {memory:.2f}，深度 {depth:,} 处一个 token 的用时为 {time} 倍</translation>
    </message>
    <message>
        <source>{type}: {share:.0%} of the memory, {loss}</source>
        <translation>{type}：占 {share:.0%} 的内存，{loss}</translation>
    </message>
    <message>
        <source>{url} is the address of a server; this engine opens GGUF files of this machine.</source>
        <translation>{url} 是服务器的地址；这个引擎只打开这台电脑上的 GGUF 文件。</translation>
    </message>
    <message>
        <source>{value:.2g} % (95 %: {low:.2g} to {high:.2g})</source>
        <translation>{value:.2g} %（95 %：{low:.2g} 到 {high:.2g}）</translation>
    </message>
    <message>
        <source>{verdict}: logits differ by at most {difference:.2g}, KL {kl:.2g} nats</source>
        <translation>{verdict}：logits 最多相差 {difference:.2g}，KL {kl:.2g} nat</translation>
    </message>
    <message>
        <source>{verdict}: {was} → {now}</source>
        <translation>{verdict}：{was} → {now}</translation>
    </message>
    <message>
        <source>{what} ({n_tokens:,} tokens) was removed</source>
        <translation>已移除{what}（{n_tokens:,} 个 token）</translation>
    </message>
    <message>
        <source>{what} ({n_tokens:,} tokens) were removed</source>
        <translation>已移除{what}（{n_tokens:,} 个 token）</translation>
    </message>
    <message>
        <source>{what} are not saved yet. {why} kvdesk tries again by itself.</source>
        <translation>{what}尚未保存。{why}kvdesk 会自动重试。</translation>
    </message>
    <message>
        <source>{what} is full, and what could be removed is shared with them. The answer ends here.</source>
        <translation>{what}已满，可移除的内容与它们共享。回答在此结束。</translation>
    </message>
    <message>
        <source>{what} is full.</source>
        <translation>{what}已满。</translation>
    </message>
    <message>
        <source>{what} is full. The answer ends here.</source>
        <translation>{what}已满。回答在此结束。</translation>
    </message>
    <message>
        <source>{what} is not saved yet. {why} kvdesk tries again by itself.</source>
        <translation>{what}尚未保存。{why}kvdesk 会自动重试。</translation>
    </message>
    <message>
        <source>{what} is only for those who accept its terms on {host}: accept them there, and enter your token.</source>
        <translation>{what} 只提供给在 {host} 上接受其条款的用户：请在那里接受，然后输入你的 token。</translation>
    </message>
    <message>
        <source>{what} over {base}, {kind}</source>
        <translation>{what}与{base}之比，{kind}</translation>
    </message>
    <message>
        <source>{what}, round {n}</source>
        <translation>{what}，第 {n} 轮</translation>
    </message>
    <message>
        <source>{what}, {n} threads over the best</source>
        <translation>{what}，{n} 个线程与最佳值之比</translation>
    </message>
    <message>
        <source>{what}, {policy} over {other}</source>
        <translation>{what}，{policy}与{other}之比</translation>
    </message>
    <message>
        <source>{what}: {done} of {total} tokens</source>
        <translation>{what}：{done} / {total} 个 token</translation>
    </message>
    <message>
        <source>{what}: “{was}” and “{now}” are equally likely.</source>
        <translation>{what}：“{was}”和“{now}”的可能性相同。</translation>
    </message>
    <message>
        <source>{what}; the likeliest {likeliest}.</source>
        <translation>{what}；最可能的{likeliest}。</translation>
    </message>
    <message>
        <source>{when} UTC · {model} · {form} form · {seconds} s</source>
        <translation>{when} UTC · {model} · {form}形式 · {seconds} 秒</translation>
    </message>
    <message>
        <source>{when}, took {took}, {cells}{difference}.</source>
        <translation>{when}，用时 {took}，{cells}{difference}。</translation>
    </message>
    <message>
        <source>{whole} {flash} ({plain} without flash attention)</source>
        <translation>{whole} {flash}（无 flash attention 时为 {plain}）</translation>
    </message>
    <message>
        <source>{whole}, {kind}</source>
        <translation>{whole}，{kind}</translation>
    </message>
    <message>
        <source>{whole}, {kind}: its parts over kvdesk</source>
        <translation>{whole}，{kind}：各部分与 kvdesk 之比</translation>
    </message>
    <message>
        <source>{whole}: llama.cpp&apos;s calls alone</source>
        <translation>{whole}：仅 llama.cpp 的调用</translation>
    </message>
    <message>
        <source>{why} Trying again in {s} s.</source>
        <translation>{why}{s} 秒后重试。</translation>
    </message>
    <message>
        <source>{why} What was downloaded is kept: resume later.</source>
        <translation>{why}已下载的内容会保留：可以稍后继续。</translation>
    </message>
    <message>
        <source>{words}
Cells changed: {n_cells}, in {took}</source>
        <translation>{words}
变化的单元：{n_cells}，用时 {took}</translation>
    </message>
    <message>
        <source>{word}. {note}</source>
        <translation>{word}。{note}</translation>
    </message>
    <message>
        <source>“)” closes nothing</source>
        <translation>多余的“)”</translation>
    </message>
    <message>
        <source>“)” is missing</source>
        <translation>缺少“)”</translation>
    </message>
    <message>
        <source>“::=” is missing after the name of a rule</source>
        <translation>规则名称后缺少“::=”</translation>
    </message>
    <message>
        <source>“\{char}” means nothing</source>
        <translation>“\{char}”没有意义</translation>
    </message>
    <message>
        <source>“\{text}” is no character</source>
        <translation>“\{text}”不是字符</translation>
    </message>
    <message>
        <source>“\{text}” means nothing</source>
        <translation>“\{text}”没有意义</translation>
    </message>
    <message>
        <source>“]” is missing</source>
        <translation>缺少“]”</translation>
    </message>
    <message>
        <source>“{busy}” is running</source>
        <translation>“{busy}”正在运行</translation>
    </message>
    <message>
        <source>“{name}” is a built-in preset: choose another name.</source>
        <translation>“{name}”是内置预设：请使用其他名称。</translation>
    </message>
    <message>
        <source>“{name}” was deleted; its values are still shown.</source>
        <translation>“{name}”已删除；它的值仍然显示。</translation>
    </message>
    <message>
        <source>“{name}” was imported.</source>
        <translation>“{name}”已导入。</translation>
    </message>
    <message>
        <source>“{text}” is not a number.</source>
        <translation>“{text}”不是数字。</translation>
    </message>
    <message>
        <source>“{title}” is in no folder now.</source>
        <translation>“{title}”现在不在任何文件夹中。</translation>
    </message>
    <message>
        <source>“{title}” is in the folder “{folder}” now.</source>
        <translation>“{title}”现在位于文件夹“{folder}”中。</translation>
    </message>
    <message>
        <source>“{title}” is {verdict} ({n} tokens computed again in {time}).</source>
        <translation>“{title}”：{verdict}（重新计算了 {n} 个 token，用时 {time}）。</translation>
    </message>
    <message>
        <source>“{title}” {what}</source>
        <translation>“{title}”：{what}</translation>
    </message>
    <message>
        <source>“{title}”: the probabilities of the next token are exactly the same.</source>
        <translation>“{title}”：下一个 token 的概率完全相同。</translation>
    </message>
    <message>
        <source>“{title}”: the probabilities of the next token are {verdict} ({numbers})</source>
        <translation>“{title}”：下一个 token 的概率{verdict}（{numbers}）</translation>
    </message>
    <message>
        <source>“}” is missing</source>
        <translation>缺少“}”</translation>
    </message>
</context>
</TS>
