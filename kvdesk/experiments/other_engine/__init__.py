"""The audit of kvdesk over another libllama: its cells beside those of the rules of llama.cpp that kvdesk mirrors."""
