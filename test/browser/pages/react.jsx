// A chat under React: react.html?stock#ID is the AI SDK's own, else it is that of clients/js/examples.
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { Chat } from '../../../clients/js/examples/chat.jsx';
import { StockChat } from './stock.jsx';

const Kind = location.search === '?stock' ? StockChat : Chat;
createRoot(document.querySelector('main')).render(<StrictMode><Kind id={location.hash.slice(1)} /></StrictMode>);
