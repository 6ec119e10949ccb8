// What npm's programs do with a server, as `clients.py`: URL NAME. It runs in a folder that has openai, ai,
// @ai-sdk/openai-compatible and zod, and ends with an error where one fails. Whether a model calls a tool that it may
// call is its own affair.

import assert from "node:assert";

const QUESTION = "Use the tool: how is the weather in Rome?";
const ABOUT = "Ann is 31 years old. Give her name and age.";
const CITY = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const ABOUT_IT = "Weather of a city.";
const WEATHER = { type: "function", function: { name: "weather", description: ABOUT_IT, parameters: CITY } };

async function openai(url) {
  const { default: OpenAI } = await import("openai");
  const { zodResponseFormat } = await import("openai/helpers/zod");
  const { z } = await import("zod");
  const client = new OpenAI({ baseURL: url, apiKey: "none", maxRetries: 0, timeout: 600_000 });
  const ask = (text, more) => ({ model: "m", messages: [{ role: "user", content: text }], max_tokens: 100, ...more });
  const offered = { tools: [WEATHER], tool_choice: "required", reasoning_effort: "low" };
  const called = await client.chat.completions.create(ask(QUESTION, offered));
  assert.equal(called.choices[0].message.tool_calls[0].function.name, "weather");
  const person = zodResponseFormat(z.object({ name: z.string(), age: z.number().int() }), "person");
  const parsed = await client.chat.completions.parse(ask(ABOUT, { response_format: person }));
  assert.ok(parsed.choices[0].message.parsed.name);
  const tools = [{ type: "function", function: { ...WEATHER.function, parse: JSON.parse, function: () => "sunny" } }];
  const run = client.chat.completions.runTools(ask(QUESTION, { tools, stream: true }), { maxChatCompletions: 3 });
  await run.done();
}

async function aiSdk(url) {
  const { generateObject, generateText, stepCountIs, streamText, tool } = await import("ai");
  const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
  const { z } = await import("zod");
  const place = { name: "kvdesk", baseURL: url, apiKey: "none" };
  const model = createOpenAICompatible({ ...place, includeUsage: true, supportsStructuredOutputs: true })("m");
  const providerOptions = { kvdesk: { reasoningEffort: "low" } };
  const usual = { model, maxOutputTokens: 100, maxRetries: 0, providerOptions };
  const inputSchema = z.object({ city: z.string() });
  const tools = { weather: tool({ description: ABOUT_IT, inputSchema, execute: async () => "sunny" }) };
  const called = await generateText({ ...usual, prompt: QUESTION, tools, toolChoice: "required" });
  assert.equal(called.toolCalls[0].toolName, "weather");
  await generateText({ ...usual, prompt: QUESTION, tools, stopWhen: stepCountIs(3) });
  const schema = z.object({ name: z.string(), age: z.number().int() });
  const { object } = await generateObject({ ...usual, prompt: ABOUT, schema });
  assert.ok(object.name);
  const stream = streamText({ ...usual, prompt: ABOUT });
  let text = "";
  for await (const part of stream.textStream) text += part;
  assert.ok(text && (await stream.usage).inputTokens > 0);
}

const [url, name] = process.argv.slice(2);
await { openai, "ai-sdk": aiSdk }[name](url);
